"""Checks the memory in use over many calls."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

from opwright.checker.behavior.memory import bytes_in_use
from opwright.checker.kinds import Kind
from opwright.checker.verdict import Failure

if TYPE_CHECKING:
    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject

_SECONDS = 1.0
_LEAK_CALLS = 400
_LEAK_BYTES = 16  # for each call; less is noise of the interpreter


def check_memory_growth(subject: Subject, recorder: Recorder) -> None:
    """Check that memory in use does not grow with the number of calls."""
    if recorder.failed:
        return
    if bytes_in_use() is None:
        recorder.note("memory growth was not checked: this C library does not report the memory in use")
        return
    case = subject.samples[0]
    code = subject.code(case)
    if not recorder.begin(f"{case.name}: {_LEAK_CALLS} calls and more", code):
        return
    arguments = case.fresh()
    calls = _calls_in_time(subject, arguments)
    grown = [_growth(subject, arguments, calls) for _ in range(4)][1:]  # the first round warms up caches
    if min(grown) > _LEAK_BYTES * calls:
        got = f"{min(grown) / calls:.0f} bytes more in use after each call, over {len(grown) * calls} calls"
        loop = f"# repeatedly:\n{code}"
        recorder.fail(Failure(Kind.LEAK, case.name, loop, got, "the same memory in use before and after"))


def _calls_in_time(subject: Subject, arguments: dict[str, Any]) -> int:
    started = time.perf_counter()
    with contextlib.suppress(Exception):
        subject.call(arguments)
    once = time.perf_counter() - started
    return max(10, min(_LEAK_CALLS, int(_SECONDS / max(once, 1e-6))))


def _growth(subject: Subject, arguments: dict[str, Any], calls: int) -> int:
    before = bytes_in_use() or 0
    for _ in range(calls):
        with contextlib.suppress(Exception):
            subject.call(arguments)
    return (bytes_in_use() or 0) - before
