"""Checks that memory in use does not grow over many calls."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from opwright.checker.behavior.memory import bytes_in_use
from opwright.checker.kinds import Kind
from opwright.checker.verdict import Failure

if TYPE_CHECKING:
    from collections.abc import Callable

    from opwright.checker.cases.case import Case
    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject

_SECONDS = 1.0
_LEAK_CALLS = 400
_LEAK_BYTES = 16  # per call; less is noise from the interpreter
_ROUNDS = 4
# A few calls of each variation show which variations to call many times.
_FEW_CALLS = 8
_VARIED_S = 4.0
_QUICK_VARIED_S = 0.7
# At least this many variations are called, unless they take _PATIENCE times longer than planned.
_FEWEST_VARIATIONS = 150
_PATIENCE = 10


def check_memory_growth(subject: Subject, recorder: Recorder) -> None:
    """Check that memory in use does not grow with the number of calls, whether they return or raise."""
    if recorder.failed:
        return
    if bytes_in_use() is None:
        recorder.note("memory growth was not checked: this C library does not report the memory in use")
        return
    first = subject.samples[0]
    if recorder.begin(f"{first.name}: {_LEAK_CALLS} calls and more", subject.code(first)):
        _check_growth(subject, recorder, first)
    started, limit = time.process_time(), _QUICK_VARIED_S if subject.options.quick else _VARIED_S
    for number, case in enumerate(_by_turns([*subject.samples, *subject.varied])):
        patience = _PATIENCE if number < _FEWEST_VARIATIONS else 1
        if recorder.failed or time.process_time() - started > limit * patience:
            return
        step = f"{case.name}: {_FEW_CALLS} calls and more"
        if recorder.died_of(case.name, case.group) or not recorder.begin(step, subject.code(case), group=case.group):
            continue
        if _may_grow(subject, case):
            _check_growth(subject, recorder, case)


def _by_turns(cases: list[Case]) -> list[Case]:
    """Order `cases` by their position in their group: cases of one group often take the same branches."""
    count: Counter[str] = Counter()
    turns = []
    for case in cases:
        turns.append((count[case.group], case))
        count[case.group] += 1
    return [case for _, case in sorted(turns, key=lambda turn: turn[0])]


def _may_grow(subject: Subject, case: Case) -> bool:
    arguments = case.fresh()
    grown = (_growth(subject, arguments, _FEW_CALLS, lambda: bytes_in_use(collect=False)) for _ in range(_ROUNDS))
    return all(growth >= _LEAK_BYTES * _FEW_CALLS for growth in grown)


def _check_growth(subject: Subject, recorder: Recorder, case: Case) -> None:
    arguments = case.fresh()
    calls = _calls_in_time(subject, arguments)
    rounds = (_growth(subject, arguments, calls, bytes_in_use) for _ in range(_ROUNDS))
    grown = list(itertools.islice(rounds, 1, None))  # the first round warms up caches
    if min(grown) > _LEAK_BYTES * calls:
        got = f"{min(grown) / calls:.0f} bytes more in use after each call, over {len(grown) * calls} calls"
        loop = f"# repeatedly:\n{subject.code(case)}"
        recorder.fail(Failure(Kind.LEAK, case.name, loop, got, "the same memory in use before and after"))


def _calls_in_time(subject: Subject, arguments: dict[str, Any]) -> int:
    started = time.perf_counter()
    with contextlib.suppress(Exception):
        subject.call(arguments)
    once = time.perf_counter() - started
    return max(10, min(_LEAK_CALLS, int(_SECONDS / max(once, 1e-6))))


def _growth(subject: Subject, arguments: dict[str, Any], calls: int, in_use: Callable[[], int | None]) -> int:
    before = in_use() or 0
    for _ in range(calls):
        with contextlib.suppress(Exception):
            subject.call(arguments)
    return (in_use() or 0) - before
