"""Shows how far a build is, where somebody looks."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from rich.console import Console
from rich.errors import LiveError

if TYPE_CHECKING:
    from types import TracebackType

    from rich.status import Status
    from typing_extensions import Self


class Progress:
    """The progress of one build, on standard error.

    On a terminal it is one line that changes and is gone at the end. Elsewhere nothing is printed,
    unless `verbose`: then one line a step.

    Args:
        name: what is being built.
        verbose: print each step as a line of its own, everywhere.
    """

    def __init__(self, name: str, *, verbose: bool = False) -> None:
        self._name = name
        self._verbose = verbose
        self._console = Console(stderr=True, highlight=False)
        self._status: Status | None = None

    def __enter__(self) -> Self:
        # Only one live display can be on a console; a caller's own wins.
        if self._console.is_terminal and not self._verbose:
            with contextlib.suppress(LiveError):
                self._status = self._console.status(f"building {self._name}")
                self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()

    def step(self, verb: str, what: str, done: int | None = None, total: int | None = None) -> None:
        """Say what is being done: `verb` to `what`, with `done` of `total` behind it."""
        count = "" if total is None else f" [{done}/{total}]"
        self._show(f"{self._name}: {verb}{count} {what}")

    def note(self, text: str) -> None:
        """Say something that the user should see in any case, such as a long wait."""
        self._console.print(f"{self._name}: {text}", markup=False)

    def _show(self, text: str) -> None:
        if self._verbose:
            self._console.print(text, markup=False)
        elif self._status is not None:
            self._status.update(text)
