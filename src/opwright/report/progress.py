"""Shows the progress of a build or a ship on a terminal."""

from __future__ import annotations

import contextlib
import functools
import sys
from typing import TYPE_CHECKING

from opwright.report.format import printable

if TYPE_CHECKING:
    from types import TracebackType

    from rich.console import Console
    from rich.status import Status
    from typing_extensions import Self


class Progress:
    """The progress of one build or ship, step by step.

    On a terminal it is one line, which changes and disappears at the end. Without a terminal, nothing is printed
    unless `verbose`, which prints one line per step.

    Args:
        name: what is being built or shipped; each line starts with it.
        verbose: print each step as a separate line, on a terminal too.
        console: where to print; standard error by default.
    """

    def __init__(self, name: str, *, verbose: bool = False, console: Console | None = None) -> None:
        self._name = name
        self._verbose = verbose
        self._given = console
        self._status: Status | None = None

    @functools.cached_property
    def _console(self) -> Console:
        # Imported on demand: a build found in the cache prints nothing.
        from opwright.report.terminal import console

        return self._given or console(stderr=True)

    def __enter__(self) -> Self:
        if self._verbose or not (self._given or _is_a_terminal()):
            return self
        from rich.errors import LiveError
        from rich.text import Text

        # A console can have only one live display; the caller's has precedence.
        if self._console.is_interactive:
            with contextlib.suppress(LiveError):
                self._status = self._console.status(Text(self._name))
                self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None

    def step(self, verb: str, what: str = "", done: int | None = None, total: int | None = None) -> None:
        """Show the current step.

        Args:
            verb: the action.
            what: the object of the action; empty if the verb is enough.
            done: the number of parts that are done.
            total: the total number of parts; None if unknown.
        """
        count = "" if total is None else f"[{done}/{total}]"
        line = self._line(" ".join(filter(None, (verb, count, what))))
        if self._status is not None:
            from rich.text import Text

            self._status.update(Text(line))
        elif self._verbose:
            self._print(line)

    def note(self, text: str) -> None:
        """Show a message that the user should always see, such as about a long wait."""
        self._print(self._line(text))

    def _line(self, text: str) -> str:
        return printable(f"{self._name}: {text}")

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False, soft_wrap=True)


def _is_a_terminal() -> bool:
    """Whether standard error is a terminal; checked before rich is imported."""
    return sys.stderr is not None and sys.stderr.isatty()
