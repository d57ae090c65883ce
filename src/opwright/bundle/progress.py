"""Shows how far the shipping of a model is, where somebody looks."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from rich.errors import LiveError

from opwright.report.format import printable

if TYPE_CHECKING:
    from types import TracebackType

    from rich.console import Console
    from rich.status import Status
    from typing_extensions import Self


class ShipProgress:
    """The progress of one model, a step after the other.

    On a terminal it is one line that changes and is gone at the end. Elsewhere nothing is printed, unless `verbose`:
    then one line a step.

    Args:
        console: where it is shown; None shows nothing.
        verbose: print each step as a line of its own, everywhere.
    """

    def __init__(self, console: Console | None = None, *, verbose: bool = False) -> None:
        self._console = console
        self._verbose = verbose
        self._status: Status | None = None

    def __enter__(self) -> Self:
        # Only one live display can be on a console; a caller's own wins.
        if self._console is not None and self._console.is_terminal and not self._verbose:
            with contextlib.suppress(LiveError):
                self._status = self._console.status("shipping")
                self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None

    def step(self, what: str) -> None:
        """Say what is being done."""
        text = printable(what)
        if self._status is not None:
            self._status.update(text)
        elif self._verbose and self._console is not None:
            self._console.print(text, markup=False, soft_wrap=True)
