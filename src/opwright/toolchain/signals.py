"""The name of a signal, for messages about processes that one ended."""

from __future__ import annotations

import signal


def signal_name(number: int) -> str:
    """Return the name of a signal, such as `SIGSEGV`, or `signal 35` for a number that Python has no name for.

    Real-time signals have none, and Python 3.10 lacks SIGSTKFLT.
    """
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
