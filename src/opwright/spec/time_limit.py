"""Ends Python code that takes too long."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

# What a reference or an oracle may take, in seconds of processor time.
LIMIT_S = 100.0
# 0 would mean never.
_AT_ONCE = 1e-6
# Python only reports what is raised in a finalizer or a callback, and the code continues: raise again after this time.
_AGAIN_S = 0.5


class TimeLimitError(BaseException):
    """Raised within the code; not an Exception, which it might catch."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `TimeLimitError` in the block once it has used that much processor time.

    Time that other processes take does not count. In a thread other than the main one, which alone receives signals,
    there is no limit. Within a block whose own limit comes first, that limit stays.
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
        if reached:  # code that was interrupted may raise another error, as PyTorch's C++ does
            raise TimeLimitError from error
        raise
    finally:
        ended = True
        left_s, _ = signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
        sys.unraisablehook = report
        if outer_s:
            signal.setitimer(signal.ITIMER_VIRTUAL, max(outer_s - (seconds - left_s), _AT_ONCE), interval_s)
