"""Checks that a call can be captured in a CUDA graph, and that replays use the current values of its arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor
from torch.utils import _pytree as pytree

from opwright.checker.behavior.captured_call import CapturedCall, CaptureError, why_not_captured
from opwright.checker.behavior.gpu_code import graph_code
from opwright.checker.behavior.same_call import copies, is_right_alone
from opwright.checker.cases.case import Case
from opwright.checker.cases.memory_contents import MemoryContents
from opwright.checker.kinds import Kind
from opwright.checker.verdict import Failure

if TYPE_CHECKING:
    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject

_MOST_CASES = 2
_REPLAYS = 2


def check_cuda_graph(subject: Subject, recorder: Recorder) -> None:
    """Capture calls of the operator, and replay each with other values."""
    if subject.device != "cuda":
        return
    for case in subject.samples[:_MOST_CASES]:
        *lines, call = subject.code(case).splitlines()
        code = graph_code(lines, call, case)
        step = f"{case.name}: captured in a CUDA graph"
        if not recorder.begin(step, code) or not is_right_alone(subject, case):
            continue  # other steps report a call that is wrong by itself
        if why_not := why_not_captured(subject, case):
            recorder.note(f"no call was captured in a CUDA graph: {why_not}")
            return
        try:
            fault = _replayed(subject, case)
        except CaptureError as error:
            recorder.end_process(Failure(Kind.GRAPH, step, code, str(error), "a call that can be captured"))
        if fault is None:
            recorder.ok()
        else:
            recorder.fail(Failure(Kind.GRAPH, step, code, f"replayed with other values: {fault.got}", fault.expected))


def _replayed(subject: Subject, case: Case) -> Failure | None:
    """Return the fault in the results of replays; None if they are right.

    Raises:
        CaptureError: the call cannot be captured.
    """
    arguments = case.fresh()
    contents = MemoryContents(arguments)
    captured = CapturedCall(lambda: subject.enqueue(arguments))
    for number in range(1, _REPLAYS + 1):
        contents.move(number)
        # Cloned before the call, which may write to them.
        given = pytree.tree_map_only(Tensor, Tensor.clone, arguments)
        replayed = Case(f"{case.name}, replayed ({number})", case.family, given)
        captured.replay()
        if subject.is_outside(replayed) or subject.expected(replayed).refusal:
            continue
        fault = subject.judge(replayed, copies(captured.results))
        subject.forget(replayed)
        if fault is not None:
            return fault
    return None
