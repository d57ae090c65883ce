"""Shows how far a bench is, where somebody looks, without disturbing what is timed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from opwright.bencher.report.digest import spread_words, time_words
from opwright.report.format import printable
from opwright.report.live import LiveBar

if TYPE_CHECKING:
    from rich.console import Console

    from opwright.bencher.result import Cell

_REFRESH_S = 0.2


class BenchProgress(LiveBar):
    """The progress of one bench.

    On a terminal it is a bar of the sizes that are done, with the cell that is being timed, gone at the end. Elsewhere
    nothing is printed, unless `verbose`: then one line a cell, everywhere. It is drawn between rounds: a thread that
    draws by itself would take time from what is timed.

    Args:
        namespace: the library that is timed.
        console: where it is shown.
        verbose: print each cell as a line of its own when it is done.
    """

    def __init__(self, namespace: str, console: Console, *, verbose: bool = False) -> None:
        super().__init__(namespace, console, verbose=verbose, draws_itself=False)
        self._drawn = 0.0

    def start(self, sizes: int | None) -> None:
        """Say how many sizes there are; None where nobody knows."""
        self._live.update(self._bar, total=sizes)

    def begin(self, cell: str) -> None:
        """Say that a cell begins."""
        words = " ".join(printable(cell).split())
        self._live.update(self._bar, description=f"{self._namespace}  {words}", refresh=True)

    def round(self) -> None:
        """Say that a round is over."""
        now = time.monotonic()
        if now - self._drawn > _REFRESH_S:
            self._drawn = now
            self._live.refresh()

    def end(self, cell: Cell) -> None:
        """Say what became of a cell."""
        if self._verbose:
            figures = [
                f"{row.name} {time_words(row.timing)} {spread_words(row.timing)}"
                if row.timing
                else f"{row.name} {row.status}: {row.reason}"
                for row in cell.rows
            ]
            words = f"{cell.op} on {cell.device}, {cell.threads} threads, {cell.size}, {cell.direction}"
            line = printable(f"{words}: {'; '.join(figures)}")
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def end_size(self) -> None:
        """Say that all cells of a size are done."""
        self._live.update(self._bar, advance=1, refresh=True)
