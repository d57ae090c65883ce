"""How a process ended, for messages: the name of a signal, or an exit code."""

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


def ending(exit_code: int) -> str:
    """How a process ended, as text to follow "the process"."""
    if exit_code >= 0:
        return f"exited with code {exit_code}"
    if exit_code == -signal.SIGKILL:
        return "was terminated by SIGKILL from outside, as when memory runs out"
    return f"was terminated by {signal_name(-exit_code)}"
