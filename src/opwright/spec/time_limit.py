"""Interrupts Python code that runs too long."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

# The limit for a reference or an oracle, in seconds of processor time.
LIMIT_S = 100.0
# Expires immediately; 0 would disable the timer.
_IMMEDIATELY_S = 1e-6
# Python only reports an exception in a finalizer or a callback, and the code continues: raise again after this time.
_AGAIN_S = 0.5


class TimeLimitError(BaseException):
    """Raised within the limited code; not an Exception, which that code might catch."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `TimeLimitError` in the block after `seconds` of processor time.

    The time of other processes does not count. Outside the main thread there is no limit, because only the main thread
    receives signals. An enclosing limit that expires first stays in effect.
    """
    outer_s, interval_s = signal.getitimer(signal.ITIMER_VIRTUAL)
    if threading.current_thread() is not threading.main_thread() or 0 < outer_s <= seconds:
        yield
        return

    ended = reached = False

    def stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001  the arguments of a signal handler
        nonlocal reached
        if not ended:
            reached = True
            raise TimeLimitError

    report = sys.unraisablehook

    def report_others(unraisable: sys.UnraisableHookArgs) -> None:
        if not isinstance(unraisable.exc_value, TimeLimitError):
            report(unraisable)

    before = signal.signal(signal.SIGVTALRM, stop)
    sys.unraisablehook = report_others
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, _AGAIN_S)
    try:
        yield
    except Exception as error:
        if reached:  # interrupted code may raise another error, as PyTorch's C++ does
            raise TimeLimitError from error
        raise
    finally:
        ended = True
        left_s, _ = signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
        sys.unraisablehook = report
        if outer_s:
            signal.setitimer(signal.ITIMER_VIRTUAL, max(outer_s - (seconds - left_s), _IMMEDIATELY_S), interval_s)
