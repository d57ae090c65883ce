"""Tries in a forked copy of this process what may end it."""

from __future__ import annotations

import contextlib
import re
import signal
from typing import TYPE_CHECKING

from opwright.errors import LoadError
from opwright.toolchain.run import run_forked

if TYPE_CHECKING:
    from collections.abc import Callable

_LONGEST_S = 60.0
_MOST_SHOWN = 1500
# Whether this process is the copy.
_copies: list[None] = []


def rehearse(act: Callable[[], object], what: str, *, must_succeed: bool = False) -> None:
    """Run a function in a copy of this process first.

    PyTorch ends a process whose native code cannot register its operators: in static constructors nothing can catch an
    exception. A copy that hangs, because other threads held locks when it was made, proves nothing.

    Args:
        act: the function.
        what: what it does, for the message.
        must_succeed: an exception is an error too. Otherwise it is ignored, since the function will raise it again.

    Raises:
        LoadError: the copy was ended; or it raised an exception that is an error.
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
    how = signal.Signals(-ended.exit_code).name if ended.exit_code < 0 else f"exit status {ended.exit_code}"
    why = _printed(ended.output) or "it printed nothing"
    if ended.exit_code == -signal.SIGSEGV:
        why += (
            ". PyTorch's stable macros end a process in this way if a namespace is defined twice, or a definition is "
            "rejected"
        )
    msg = f"{what} would end this process ({how}), and was not done: {why}"
    raise LoadError(msg)


def _printed(output: str) -> str:
    """What a process that was ended printed, without the stack."""
    said = re.search(r"what\(\):\s*(.*?)(?:\nException raised from|\Z)", output, flags=re.DOTALL)
    return (said[1] if said else output).strip()[:_MOST_SHOWN]
