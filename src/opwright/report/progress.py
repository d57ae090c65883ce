"""Shows how far a build or a ship is, where somebody watches."""

from __future__ import annotations

import contextlib
import functools
import os
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

    On a terminal it is one line that changes and disappears at the end. Elsewhere nothing is printed, unless `verbose`:
    then one line per step.

    Args:
        name: what is being built or shipped; each line begins with it.
        verbose: print each step as a line of its own, everywhere.
        console: where it is shown; standard error by default.
    """

    def __init__(self, name: str, *, verbose: bool = False, console: Console | None = None) -> None:
        self._name = name
        self._verbose = verbose
        self._given = console
        self._status: Status | None = None

    @functools.cached_property
    def _console(self) -> Console:
        # Imported where something is shown: a build that is found shows nothing.
        from rich.console import Console

        return self._given or Console(stderr=True, highlight=False)

    def __enter__(self) -> Self:
        if self._verbose or not (self._given or _may_be_a_terminal()):
            return self
        from rich.errors import LiveError
        from rich.text import Text

        # A console can have only one live display; the caller's own has precedence.
        if self._console.is_terminal:
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
        """Show what is being done.

        Args:
            verb: what is done.
            what: to what it is done; empty where the verb says all.
            done: how many parts of it are done.
            total: how many parts it has; None where that is not known.
        """
        count = "" if total is None else f"[{done}/{total}]"
        line = self._line(" ".join(filter(None, (verb, count, what))))
        if self._status is not None:
            from rich.text import Text

            self._status.update(Text(line))
        elif self._verbose:
            self._print(line)

    def note(self, text: str) -> None:
        """Show something that the user should see in any case, such as a long wait."""
        self._print(self._line(text))

    def _line(self, text: str) -> str:
        return printable(f"{self._name}: {text}")

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False, soft_wrap=True)


def _may_be_a_terminal() -> bool:
    """Whether standard error is a terminal, or the user says that it counts as one, before rich is imported to ask."""
    said = any(name in os.environ for name in ("FORCE_COLOR", "TTY_COMPATIBLE"))
    return said or (sys.stderr is not None and sys.stderr.isatty())
