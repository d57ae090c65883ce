"""Tries calls that may terminate the process in a forked copy of it."""

from __future__ import annotations

import contextlib
import re
import signal
from typing import TYPE_CHECKING

from opwright.errors import LoadError
from opwright.toolchain.run import run_forked
from opwright.toolchain.signals import signal_name

if TYPE_CHECKING:
    from collections.abc import Callable

_LONGEST_S = 60.0
_MOST_SHOWN = 1500
# Whether this process is the copy.
_copies: list[None] = []


def rehearse(act: Callable[[], object], what: str, *, must_succeed: bool = False) -> None:
    """Run a function in a copy of this process first.

    PyTorch terminates a process whose native code cannot register its operators: an exception in a static constructor
    cannot be caught. A copy that hangs, because other threads held locks when it was forked, proves nothing.

    Args:
        act: the function.
        what: a description of the function, for the message.
        must_succeed: an exception is an error too. Otherwise it is ignored, because the function will raise it again.

    Raises:
        LoadError: the copy was terminated, or it raised an exception that is an error.
    """
    if _copies:
        return

    def act_in_copy() -> None:
        _copies.append(None)
        with contextlib.nullcontext() if must_succeed else contextlib.suppress(Exception):
            act()

    ended = run_forked(act_in_copy, timeout_s=_LONGEST_S)
    if ended.timed_out or ended.exit_code == 0:
        return
    _, raised, error = ended.output.rpartition("\0")
    if must_succeed and raised:
        raise LoadError(error)
    how = signal_name(-ended.exit_code) if ended.exit_code < 0 else f"exit status {ended.exit_code}"
    why = _printed(ended.output) or "it printed nothing"
    if ended.exit_code == -signal.SIGSEGV:
        why += (
            ". PyTorch's stable macros terminate a process in this way if a namespace is defined twice, or a "
            "definition is rejected"
        )
    msg = f"{what} would terminate this process ({how}), so it was not done: {why}"
    raise LoadError(msg)


def _printed(output: str) -> str:
    """The output of a terminated process, without the stack."""
    message = re.search(r"what\(\):\s*(.*?)(?:\nException raised from|\Z)", output, flags=re.DOTALL)
    return (message[1] if message else output).strip()[:_MOST_SHOWN]
