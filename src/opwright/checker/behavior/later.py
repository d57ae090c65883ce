"""Checks results some time after the call, in reused memory, and after many calls."""

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from opwright.checker.behavior.branches import branches
from opwright.checker.behavior.poison import poisoned
from opwright.checker.behavior.same_call import copies, difference, same_numbers
from opwright.checker.cases.case import Case
from opwright.checker.cases.variation import generator, tensors
from opwright.checker.kinds import Kind
from opwright.checker.verdict import Failure
from opwright.spec import derive
from opwright.spec.difference import first_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject

# How long after the call its result is read again.
_WATCHED_S = 0.25
# Calls in the same memory: each changes one value per tensor, which a cache keyed by a few values misses.
_SAME_MEMORY = 12
# Multiples of _LOOK_EVERY, so that the last results are compared.
_MANY_CALLS = 20079
_QUICK_MANY_CALLS = 3007
_MANY_S = 4.0
_QUICK_MANY_S = 0.7
_LOOK_EVERY = 97
# At least this many calls are made, unless they take _PATIENCE times longer than planned.
_FEWEST_CALLS = 1200
_PATIENCE = 10
# Far below a step's time limit: calls that wait, or a loaded machine, must stop the loop and not the process.
_MOST_WALL_S = 60.0


def check_finality(subject: Subject, recorder: Recorder, cases: Iterable[Case]) -> None:
    """Check that the results of `cases` are final when the call returns."""
    for case in cases:
        code = subject.code(case)
        if not recorder.has(Kind.LATE) and recorder.begin(
            f"{case.name}: the result some time later", code, group=case.group
        ):
            _check_final(subject, recorder, case, code)


def check_later(subject: Subject, recorder: Recorder) -> None:
    """Check that results depend only on contents, and stay right over many calls."""
    if recorder.has(Kind.LATE):
        return  # values that are not final yet differ from call to call
    for case in (*subject.samples, *branches(subject, recorder)):
        code = subject.code(case)
        if recorder.begin(f"{case.name}: in the same memory with other values", code, group=case.group):
            _check_same_memory(subject, recorder, case, code)
    case = subject.samples[0]
    code = subject.code(case)
    if not recorder.failed and recorder.begin(f"{case.name}: after many calls", code):
        _check_many_calls(subject, recorder, case, code)


def _check_final(subject: Subject, recorder: Recorder, case: Case, code: str) -> None:
    arguments = case.fresh()
    try:
        # Elements that are not written yet must not look like the result of an earlier call.
        with poisoned(), _one_processor():
            results = subject.call(arguments)
    except Exception:
        return
    kept = copies(results)
    time.sleep(_WATCHED_S)
    if not all(map(same_numbers, pytree.tree_leaves(results), pytree.tree_leaves(kept))):
        changed = difference(results, kept) or "other values within rounding"
        got = f"{_WATCHED_S:g} s after the call returned, the result has changed to {changed}"
        recorder.fail(Failure(Kind.LATE, case.name, code, got, "the values that it had when the call returned"))


@contextlib.contextmanager
def _one_processor() -> Iterator[None]:
    """Run this thread and those it starts on one processor, so that work left to another thread finishes late."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _check_same_memory(subject: Subject, recorder: Recorder, case: Case, code: str) -> None:
    """Call the operator in the same memory several times, and change one value of each tensor before each call."""
    arguments = case.fresh()
    choose = generator(subject.options.seed, case.name)
    for number in range(_SAME_MEMORY):
        named = f"{case.name} with other values ({number})"
        before = Case(named, case.family, derive.with_tensors(arguments, Tensor.clone))
        if subject.is_outside(before):
            return
        try:
            results = subject.call(arguments)
        except Exception:
            return
        wanted = subject.expected(before)
        fault = None if wanted.refusal else subject.judge(before, results)
        if fault is not None and number > 0:  # other steps report a sample whose first result is wrong
            got = f"call number {number + 1}: {fault.got}"
            loop = f"# repeatedly, each time with one value changed in the same memory:\n{code}"
            recorder.fail(
                _fault_in_fresh_memory(subject, before) or Failure(Kind.STATE, case.name, loop, got, fault.expected)
            )
        subject.forget(before)
        if fault is not None:
            return
        _change_one_number(arguments, choose)
    recorder.ok()


def _fault_in_fresh_memory(subject: Subject, case: Case) -> Failure | None:
    """The fault of one call in new memory, which earlier calls cannot have caused."""
    try:
        results = subject.call(case.fresh())
    except Exception:
        return None
    return subject.judge(case, results)


def _change_one_number(arguments: dict[str, Any], choose: torch.Generator) -> None:
    """Swap two elements of each tensor, which keeps integers valid, and scale one of them in floating-point tensors."""
    for _, tensor in tensors(arguments):
        if tensor.numel() < 1 or tensor.is_meta:
            continue
        index = torch.unravel_index(torch.randint(0, tensor.numel(), (2,), generator=choose), tensor.shape or (1,))
        one, other = (tuple(int(dim[at]) for dim in index) if tensor.dim() else () for at in (0, 1))
        first, second = tensor[one].clone(), tensor[other].clone()
        tensor[one], tensor[other] = second, first * (1.5 if tensor.is_floating_point() else 1)


def _check_many_calls(subject: Subject, recorder: Recorder, case: Case, code: str) -> None:
    """Call the operator far more often than a warm-up would, with two sets of values, and check some results."""
    choose = generator(subject.options.seed, case.name, "many calls")
    calls = [case.fresh() for _ in range(2)]
    for _ in range(4):
        _change_one_number(calls[1], choose)
    names = (f"{case.name}, called often", f"{case.name} with other values, called often")
    cases = [Case(name, case.family, given) for name, given in zip(names, calls, strict=True)]
    if any(subject.is_outside(one) or subject.expected(one).refusal for one in cases):
        return
    if wrong := list(filter(None, (_fault_in_fresh_memory(subject, one) for one in cases))):
        recorder.fail(wrong[0])
        return
    for number in _numbers_in_time(quick=subject.options.quick):
        try:
            last = [subject.call(one.fresh()) for one in cases]
        except Exception as error:
            if number > 1:  # other steps report an operator that raises in the first call
                got = f"after {2 * (number - 1)} calls: {first_line(error)}"
                wanted = "a result, as from earlier calls"
                recorder.fail(Failure(Kind.STATE, case.name, f"# repeatedly:\n{code}", got, wanted))
            return
        if number % _LOOK_EVERY:
            continue
        for one, results in zip(cases, last, strict=True):
            if (fault := subject.judge(one, results)) is not None:
                got = f"after {2 * number} calls: {fault.got}"
                recorder.fail(Failure(Kind.STATE, case.name, f"# repeatedly:\n{code}", got, fault.expected))
                return
    recorder.ok()


def _numbers_in_time(*, quick: bool) -> Iterator[int]:
    """Count from 1 until enough calls were made or the time is up."""
    most, seconds = (_QUICK_MANY_CALLS, _QUICK_MANY_S) if quick else (_MANY_CALLS, _MANY_S)
    started, latest = time.process_time(), time.monotonic() + _MOST_WALL_S
    for number in range(1, most + 1):
        limit = seconds * (_PATIENCE if number <= _FEWEST_CALLS else 1)
        if time.process_time() - started >= limit or time.monotonic() > latest:
            return
        yield number
