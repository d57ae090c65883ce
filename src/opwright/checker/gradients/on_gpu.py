"""Checks gradients on a stream on which all inputs arrive late, and in a CUDA graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from opwright.checker.behavior.captured_call import CapturedCall, CaptureError, why_not_captured
from opwright.checker.behavior.gpu_code import graph_code, late_stream_code
from opwright.checker.behavior.late_arrival import on_late_stream
from opwright.checker.cases.case import Case
from opwright.checker.cases.memory_contents import MemoryContents
from opwright.checker.gradients.code import gradient_call_code
from opwright.checker.gradients.goals import expected_of, fault
from opwright.checker.gradients.trial import Trial, incoming, pulled, with_leaves
from opwright.checker.kinds import Kind
from opwright.checker.verdict import Failure
from opwright.spec import derive
from opwright.spec.difference import first_line

if TYPE_CHECKING:
    from torch import Tensor

    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject
    from opwright.spec.difference import Goal

_GRADS = "the incoming gradients"


class _Call:
    """A call and its backward, with their own memory.

    Args:
        subject: the operator.
        case: the call.

    Attributes:
        read: the tensors that it reads, by name: the arguments and the incoming gradients.
    """

    def __init__(self, subject: Subject, case: Case) -> None:
        self._subject = subject
        self._trial = Trial(case, "", tuple(subject.floating(case)))
        self._grads = incoming(subject, self._trial)
        self._arguments, self._leaves = with_leaves(case, self._trial.names)
        self.read: dict[str, Any] = {**self._arguments, _GRADS: self._grads}

    def enqueue(self) -> list[Any]:
        """Enqueue both on the current stream, and return the gradients of the leaves, in order."""
        results = derive.tensors(self._subject.enqueue(self._arguments))
        found = pulled(results, self._grads, self._leaves) or {}
        return [found.get(path) for path in self._leaves]

    def goals(self) -> dict[str, Goal]:
        """The expected gradients for the current contents of memory, by path."""
        now = Case(self._trial.case.name, self._trial.case.family, self._arguments)
        trial = Trial(now, "", self._trial.names)
        return expected_of(self._subject.op, trial, [None if one is None else one.clone() for one in self._grads])

    def wrong(self, found: list[Tensor | None], goals: dict[str, Goal]) -> tuple[str, str] | None:
        """The first gradient in `found` that differs, and the expected one."""
        by_path = dict(zip(self._leaves, found, strict=True))
        for path, goal in goals.items():
            if (difference := fault(by_path[path], goal, everywhere=False)) is not None:
                return f"the gradient of {path}: {difference.got}", f"of the reference: {difference.expected}"
        return None


def check_gradients_on_gpu(subject: Subject, recorder: Recorder, case: Case) -> None:
    """Request the gradients of a call on a stream on which all inputs arrive late, and from a CUDA graph."""
    if subject.device != "cuda":
        return
    lines, expression = gradient_call_code(subject, case, subject.floating(case))
    for what, kind, code, check in (
        ("gradients on a stream on which all inputs arrive late", Kind.STREAM, late_stream_code, _late),
        ("gradients captured in a CUDA graph", Kind.GRAPH, graph_code, _replayed),
    ):
        step, repro = f"{case.name}: {what}", code(lines, expression, case)
        if not recorder.begin(step, repro) or not _are_right_alone(subject, case):
            continue  # other steps report gradients that are wrong by themselves
        if kind is Kind.GRAPH and (why_not := why_not_captured(subject, case)):
            recorder.note(f"no gradient was captured in a CUDA graph: {why_not}")
            return
        try:
            wrong = check(_Call(subject, case))
        except CaptureError as error:
            recorder.end_process(Failure(kind, step, repro, str(error), "a call and a backward that can be captured"))
        except Exception as error:
            wrong = first_line(error), "gradients, as on the default stream"
        if wrong is None:
            recorder.ok()
        else:
            recorder.fail(Failure(kind, step, repro, *wrong))


def _are_right_alone(subject: Subject, case: Case) -> bool:
    try:
        call = _Call(subject, case)
        torch.cuda.synchronize()
        found = call.enqueue()
        torch.cuda.synchronize()
        return call.wrong(found, call.goals()) is None
    except Exception:
        return False


def _late(call: _Call) -> tuple[str, str] | None:
    """The wrong gradient if all inputs arrive late, and the expected one."""
    goals = call.goals()
    return call.wrong(on_late_stream(call.enqueue, call.read), goals)


def _replayed(call: _Call) -> tuple[str, str] | None:
    """The wrong gradient that a replay returns, and the expected one."""
    contents = MemoryContents(call.read)
    captured = CapturedCall(call.enqueue)
    for number in (1, 2):
        contents.move(number)
        goals = call.goals()
        captured.replay()
        if (wrong := call.wrong(captured.results, goals)) is not None:
            return f"replayed with other values, {wrong[0]}", wrong[1]
    return None
