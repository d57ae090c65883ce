"""Calls the operator with each case, and compares its results with the expected ones."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from opwright.checker.behavior.memory import same_bytes
from opwright.checker.behavior.ownership import alias_fault
from opwright.checker.behavior.poison import poisoned
from opwright.checker.behavior.process_state import unchanged_state
from opwright.checker.behavior.same_call import copies, difference, same_numbers
from opwright.checker.behavior.shrink import smallest
from opwright.checker.behavior.size_pattern import SizePattern
from opwright.checker.behavior.thread_count import threads
from opwright.checker.cases.case import Case, Family, is_far
from opwright.checker.cases.sharing import writes_to_shared_memory
from opwright.checker.gpu_watch import is_cuda_error
from opwright.checker.kinds import OF_VALUES, Kind
from opwright.checker.verdict import Failure
from opwright.spec import derive
from opwright.spec.difference import described, first_line
from opwright.spec.expected import are_finite

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opwright.checker.judge import Outline
    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject

# The contents of poisoned memory.
_POISON = "NaN or the largest integer, with which new memory was filled"
# The families that vary the layout in memory.
_OF_THE_LAYOUT = (Family.STRIDES, Family.OFFSET, Family.SHARED)
# The families that may overflow intermediate results of the reference.
_OF_THE_MAGNITUDE = (Family.MAGNITUDE, Family.OPTION, Family.PAIR)
# How long to wait before a wrong result is read again.
_LATER_S = 0.05
# Expected results with more elements are not kept for the other runtimes.
_KEPT_ELEMENTS = 2**16
# Larger results are compared without a copy.
_COPIED_BYTES = 2**28
# How many blocks of memory an allocator may hold for reuse, and their size; larger blocks come from the system, zeroed.
_REUSED_BLOCKS = 4
_REUSED_BYTES = 2**25


def check_results(subject: Subject, recorder: Recorder, cases: Iterable[Case]) -> None:
    """Check the results of `cases`; the kind of a fault at a size depends on all sizes at which it occurs."""
    sizes = SizePattern()
    for case in cases:
        # Rows that are far apart are strided too, so they show nothing new if strides are ignored. If the shape of the
        # result depends on values, ignored strides change the shape.
        if case.family is Family.FAR and recorder.has(Kind.STRIDES, Kind.RESULT_TYPE):
            continue
        fault = _fault(subject, recorder, case)
        if fault is not None and recorder.fail_fast:
            recorder.fail(fault)
        sizes.add(case, fault)
        if fault is not None and not sizes.holds(case, fault):
            recorder.fail(fault if recorder.has(fault.kind) else _smallest(subject, recorder, case, fault))
        if sum(tensor.numel() for tensor in derive.tensors(case.arguments)) > _KEPT_ELEMENTS:
            subject.forget(case)
    for fault in sizes.faults():
        recorder.fail(fault)


def _smallest(subject: Subject, recorder: Recorder, case: Case, fault: Failure) -> Failure:
    """The fault of the smallest failing case that was found."""
    if fault.kind not in OF_VALUES or not recorder.begin(f"{case.name}: made smaller", fault.repro, fault.kind):
        return fault
    faults = {case.name: fault}

    def fails(smaller: Case) -> bool:
        wanted = subject.expected(smaller)
        if wanted.refusal or not _can_judge(smaller, wanted) or subject.is_outside(smaller):
            return False
        try:
            found = subject.judge(smaller, subject.call(smaller.fresh()))
        except Exception:
            return False
        if found is None or found.kind is not fault.kind:
            return False
        faults[smaller.name] = found
        return True

    found = smallest(case, fails)
    return faults[found.name]


def _fault(subject: Subject, recorder: Recorder, case: Case) -> Failure | None:
    """Return the fault of one case; None, after counting the case, if it has none."""
    code = subject.code(case)
    crash = Kind.INDEX_OVERFLOW if case.family is Family.FAR else Kind.CRASH
    if not recorder.begin(case.name, code, crash, case.group):
        return None
    wanted = subject.expected(case)
    if wanted.refusal and case.claimed:
        return Failure(Kind.REFERENCE, case.name, code, got=wanted.refusal, expected="a result from the reference")
    return None if wanted.unknown else _call(subject, recorder, case, wanted)


def _call(subject: Subject, recorder: Recorder, case: Case, wanted: Outline) -> Failure | None:
    code = subject.code(case)
    arguments = case.fresh()
    try:
        with unchanged_state(subject, recorder, case), poisoned(on=not _holds_far_memory(case)):
            results = subject.call(arguments)
    except Exception as error:
        if is_cuda_error(error) and not wanted.refusal:
            # An operator that rejects arguments raises its own error; this one tried to launch a kernel for them.
            goal = "a result, or an error that names the invalid argument"
            return Failure(Kind.LAUNCH, case.name, code, got=first_line(error), expected=goal, detail=str(error))
        if not case.claimed:
            recorder.rejected()
            return None
        goal = ", ".join(described(result) for result in wanted.own)
        return Failure(Kind.RAISES, case.name, code, got=first_line(error), expected=goal, detail=str(error))
    if not recorder.begin(f"{case.name}: reading the result", code, Kind.FREED, case.group):
        return None
    # Copied immediately: a thread may still write to it.
    nbytes = sum(tensor.nbytes for tensor in derive.tensors(results))
    kept = copies(results) if nbytes <= _COPIED_BYTES else results
    misused = _written(subject, case, arguments, code) or alias_fault(subject, case, arguments, results)
    if misused is not None or not _can_judge(case, wanted):
        return misused
    fault = subject.judge(case, kept)
    if fault is None:
        recorder.ok()
    # If a result was late before, these values may not be final yet either.
    return None if fault is None or recorder.has(Kind.LATE) else _refined(subject, recorder, case, results, kept, fault)


def _refined(
    subject: Subject, recorder: Recorder, case: Case, results: list[Any], kept: list[Any], fault: Failure
) -> Failure:
    """Return `fault` with the kind found by a later read and further calls: late, unwritten or thread-dependent."""
    code = subject.code(case)
    # A wrong index may read and write anywhere, so further calls prove nothing.
    if case.family is Family.FAR or not recorder.begin(f"{case.name}: further calls", code, Kind.CRASH, case.group):
        return fault
    time.sleep(_LATER_S)
    has_changed = not all(map(same_numbers, derive.tensors(results), derive.tensors(kept)))
    if has_changed or subject.judge(case, results) is None:
        return Failure(Kind.LATE, case.name, code, f"when the call returns: {fault.got}", fault.expected)
    if fault.kind in OF_VALUES and _is_poison(subject, case, results):
        return Failure(Kind.UNINITIALISED, case.name, code, f"{fault.got}: {_POISON}", fault.expected)
    return replace(fault, **_shown_by_further_calls(subject, case, results, fault))


def _shown_by_further_calls(subject: Subject, case: Case, results: list[Any], fault: Failure) -> dict[str, Any]:
    """Return what further calls show about a fault, as new values of its attributes."""
    with threads(1):
        alone, _ = _called_again(subject, case)
    several, changes = _called_again(subject, case, results)
    if all(alone) and not all(several):
        return {"kind": Kind.THREADS, "got": f"with {torch.get_num_threads()} threads: {fault.got}"}
    # A call that reads out of bounds may return other values each time, but never the right ones.
    if any(alone) or (changes and case.family not in _OF_THE_LAYOUT):
        return {"kind": Kind.STATE, "got": f"{fault.got}, and other values when the call is repeated"}
    if case.family in _OF_THE_LAYOUT and _fault_again(subject, case.contiguous(apart=True)) is not None:
        return {"kind": Kind.WRONG_RESULT}
    return {}


def _called_again(subject: Subject, case: Case, results: list[Any] | None = None) -> tuple[list[bool], bool]:
    """Return whether each of two further calls is right, and whether any differs from `results`.

    No call reuses the memory of another call's arguments, because an operator may cache results by address.
    """
    kept: list[Any] = []
    are_right, changes = [], False
    for _ in range(2):
        arguments = case.fresh()
        kept.append(arguments)
        try:
            again = subject.call(arguments)
        except Exception:
            are_right.append(False)
            changes = True
            continue
        kept.append(again)
        are_right.append(subject.judge(case, again) is None)
        changes |= results is not None and difference(again, results) is not None
    return are_right, changes


def _fault_again(subject: Subject, case: Case) -> Failure | None:
    try:
        return subject.judge(case, subject.call(case.fresh()))
    except Exception as error:
        return Failure(Kind.RAISES, case.name, got=first_line(error))


def _can_judge(case: Case, wanted: Outline) -> bool:
    """Whether the reference can verify the results of the case: PyTorch has the kernels and enough precision."""
    if wanted.unknown or wanted.overflows:
        return False
    if wanted.refusal or case.family not in _OF_THE_MAGNITUDE:
        return True
    if not wanted.is_accurate:
        return False
    # A reference that overflows even in float64 proves nothing about a kernel that does not. But an infinity at an
    # option of zero, or at an integer, is intended.
    option = case.arguments.get(case.argument) if case.family is Family.OPTION else math.nan
    return wanted.is_finite or not are_finite(case.arguments) or not (isinstance(option, float) and option != 0)


def _written(subject: Subject, case: Case, arguments: dict[str, Any], code: str) -> Failure | None:
    """Return the failure of a call that wrote to an argument without declaring it."""
    if writes_to_shared_memory(subject.op, case.arguments):
        return None
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
                    expected=f"{name} unchanged: the schema {subject.op.schema} does not declare it as mutated",
                )
    return None


def _is_poison(subject: Subject, case: Case, results: list[Any]) -> bool:
    """Whether the wrong values in `results` are poison: without it, they are different."""
    with poisoned(on=False):
        arguments = case.fresh()
        # Poison of earlier calls may be left in the memory that the allocator reuses first.
        small = (one for one in derive.tensors(results) if one.nbytes <= _REUSED_BYTES)
        cleared = [torch.zeros_like(one) for one in small for _ in range(_REUSED_BLOCKS)]
        del cleared
        try:
            plain = subject.call(arguments)
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
