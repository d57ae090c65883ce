"""Eager: the operator called from Python, on every variation of its samples, and on inputs that it must reject."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from opwright.checker.behavior.leaks import check_memory_growth
from opwright.checker.behavior.memory import is_freed, same_bytes, shares_memory
from opwright.checker.behavior.opcheck import check_with_opcheck
from opwright.checker.behavior.poison import poisoned
from opwright.checker.behavior.repetition import check_repetition
from opwright.checker.behavior.thread_count import threads
from opwright.checker.behavior.threads import check_threads
from opwright.checker.cases.case import Case, Family, is_far
from opwright.checker.kinds import Kind
from opwright.checker.verdict import Failure
from opwright.spec import derive
from opwright.spec.difference import described, first_line

if TYPE_CHECKING:
    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject

NAME = "eager"

# Faults that may come from elements that were never written. Other kinds read foreign memory, poisoned or not.
_OF_THE_RESULT = (Kind.WRONG_RESULT, Kind.SIZE, Kind.TAIL, Kind.SPECIAL_VALUES)
# The content of poisoned memory.
_POISON = "NaN or the largest integer, which fresh memory was filled with"


def why_not(subject: Subject) -> str:
    """Why eager mode does not apply: only because the device is missing."""
    if subject.device == "cuda" and not torch.cuda.is_available():
        return "no GPU that this PyTorch can use"
    return ""


def run(subject: Subject, recorder: Recorder) -> None:
    """Call the operator on all cases, then check its behavior."""
    for case in subject.samples:
        _check_ownership(subject, recorder, case)
        _check_result(subject, recorder, case)
    if not recorder.failed:
        # A fault on the simplest case would only repeat on its variations.
        for case in subject.varied:
            # Rows far apart are strides too: if any strides are ignored, they show nothing new.
            if not (case.family is Family.FAR and recorder.has(Kind.STRIDES)):
                _check_result(subject, recorder, case)
        _check_large(subject, recorder)
    check_repetition(subject, recorder)
    check_threads(subject, recorder)
    check_memory_growth(subject, recorder)
    check_with_opcheck(subject, recorder)


def _check_large(subject: Subject, recorder: Recorder) -> None:
    case, reason = subject.large()
    if reason:
        recorder.note(reason)
    if case is not None:
        _check_result(subject, recorder, case)
        subject.forget(case)


def _check_result(subject: Subject, recorder: Recorder, case: Case) -> None:
    code = subject.code(case)
    crash = Kind.INDEX_OVERFLOW if case.family is Family.FAR else Kind.CRASH
    if not recorder.begin(case.name, code, crash, case.group):
        return
    wanted = subject.expected(case)
    if wanted.refusal and case.claimed:
        recorder.fail(
            Failure(Kind.REFERENCE, case.name, code, got=wanted.refusal, expected="a result from the reference")
        )
        return
    arguments = case.fresh()
    try:
        with poisoned(on=not _holds_far_memory(case)):
            results = subject.call(arguments)
    except Exception as error:
        if case.claimed:
            goal = ", ".join(described(result) for result in wanted.own)
            recorder.fail(
                Failure(Kind.RAISES, case.name, code, got=first_line(error), expected=goal, detail=str(error))
            )
        else:
            recorder.rejected()
        return
    if not recorder.begin(f"{case.name}: reading the result", code, Kind.FREED, case.group):
        return
    fault = _written(subject, case, arguments, code) or subject.judge(case, results)
    if fault is None:
        recorder.ok()
    elif fault.kind in _OF_THE_RESULT and _is_poison(subject, case, results):
        recorder.fail(Failure(Kind.UNINITIALISED, case.name, code, f"{fault.got}: {_POISON}", fault.expected))
    elif fault.kind in (Kind.WRONG_RESULT, Kind.TAIL) and _is_right_with_one_thread(subject, case):
        recorder.fail(replace(fault, kind=Kind.THREADS, got=f"with {torch.get_num_threads()} threads: {fault.got}"))
    else:
        recorder.fail(fault)


def _is_right_with_one_thread(subject: Subject, case: Case) -> bool:
    with threads(1):
        return subject.judge(case, subject.call(case.fresh())) is None


def _check_ownership(subject: Subject, recorder: Recorder, case: Case) -> None:
    """Check that results own their memory: that they share it with no argument, and that it is not freed."""
    code = subject.code(case)
    if not recorder.begin(f"{case.name}: whose memory the result is", code, Kind.CRASH):
        return
    arguments = case.fresh()
    try:
        results = subject.call(arguments)
    except Exception:
        return
    returned = results[: len(results) - len(subject.op.mutates)]
    if shares_memory(returned, arguments):
        recorder.fail(
            Failure(
                Kind.ALIAS,
                case.name,
                code,
                got="a result in the memory of an argument",
                expected=f"fresh memory: the schema {subject.op.schema} declares no alias",
            )
        )
    elif is_freed(returned):
        recorder.fail(
            Failure(
                Kind.FREED,
                case.name,
                code,
                got="a result in memory that the allocator hands out again",
                expected="a result that owns its memory",
            )
        )


def _written(subject: Subject, case: Case, arguments: dict[str, Any], code: str) -> Failure | None:
    """The failure of a call that wrote to an argument without declaring it."""
    for name, value in arguments.items():
        if name in subject.op.mutates or _holds_far_memory(case):
            continue
        for given, now in zip(derive.tensors(case.arguments[name]), derive.tensors(value), strict=True):
            if not same_bytes(given, now):
                return Failure(
                    Kind.WRITES_INPUT,
                    case.name,
                    code,
                    got=f"the call changed {name}",
                    expected=f"{name} as it was: the schema {subject.op.schema} does not declare it as mutated",
                )
    return None


def _is_poison(subject: Subject, case: Case, results: list[Any]) -> bool:
    """Whether the wrong values in `results` are the filling of fresh memory: without it, they are others."""
    with poisoned(on=False):
        try:
            plain = subject.call(case.fresh())
        except Exception:
            return False
    pairs = zip(derive.tensors(results), derive.tensors(plain), strict=False)
    return any(bool((_poison_in(one) & ~_poison_in(other)).any()) for one, other in pairs if one.shape == other.shape)


def _poison_in(tensor: Tensor) -> Tensor:
    if tensor.is_floating_point() or tensor.is_complex():
        return tensor.isnan()
    if tensor.dtype == torch.bool:
        return tensor
    return tensor == torch.iinfo(tensor.dtype).max


def _holds_far_memory(case: Case) -> bool:
    return any(is_far(tensor) for tensor in derive.tensors(case.arguments))
