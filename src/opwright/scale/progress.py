"""Shows the progress of a map: a bar on a terminal, and elsewhere a line every ten seconds."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from opwright.report.format import duration, printable, three_figures

if TYPE_CHECKING:
    from types import TracebackType

    from rich.console import Console
    from typing_extensions import Self

_LINE_S = 10.0
_BAR_S = 0.5


class MapProgress:
    """The progress of one map.

    Args:
        name: the name to show.
        console: the console to print to; None for none.
    """

    def __init__(self, name: str, console: Console | None = None) -> None:
        self._name = name
        self._console = console
        self._guard = threading.Lock()
        self._began = time.monotonic()
        self._total: int | None = None
        self._found = self._before = self._done = self._failed = 0
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """Stop showing progress."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def look(self) -> None:
        """Report that the search for inputs has started; progress is shown from here on."""
        if self._console is not None and self._thread is None:
            self._thread = threading.Thread(target=self._show, daemon=True)
            self._thread.start()

    def found(self, inputs: int) -> None:
        """Report the number of inputs found so far."""
        with self._guard:
            self._found = inputs

    def begin(self, total: int, done: int, failed: int) -> None:
        """Report the number of rows, of those done before, and of those that failed."""
        with self._guard:
            self._total, self._before, self._done, self._failed = total, done, 0, failed
            self._began = time.monotonic()

    @property
    def has_begun(self) -> bool:
        """Whether the inputs are known."""
        return self._total is not None

    def count(self, done: int, failed: int) -> None:
        """Report how many more rows are done, and how many of these failed."""
        with self._guard:
            self._done += done
            self._failed += failed

    def line(self) -> str:
        """The progress of the map in one line."""
        with self._guard:
            if self._total is None:
                return printable(f"{self._name}: {self._found:,} inputs found")
            spent = time.monotonic() - self._began
            rate = self._done / spent if spent else 0.0
            pieces = [f"{self._before + self._done:,} of {self._total:,} done", f"{self._failed:,} failed"]
            if rate:
                left = (self._total - self._before - self._done) / rate
                pieces += [f"{three_figures(rate)}/s", f"{duration(left)} left"]
            return printable(f"{self._name}: {', '.join(pieces)}")

    def _show(self) -> None:
        if self._console is None:
            return
        if not self._console.is_interactive:
            while not self._ended.wait(_LINE_S):
                self._console.print(self.line(), markup=False, soft_wrap=True)
            return
        from rich.text import Text

        with self._console.status(Text(self.line())) as status:
            while not self._ended.wait(_BAR_S):
                status.update(Text(self.line()))
