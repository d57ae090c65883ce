"""The progress display of a bench, designed not to disturb the measurement."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from opwright.bencher.report.digest import format_spread, format_time
from opwright.report.format import printable
from opwright.report.live import LiveBar

if TYPE_CHECKING:
    from rich.console import Console

    from opwright.bencher.result import Cell

_REFRESH_S = 0.2


class BenchProgress(LiveBar):
    """The progress of one bench.

    On a terminal it is a bar with the number of finished sizes and the current cell; it disappears at the end. Without
    a terminal, nothing is printed. With `verbose`, each finished cell is printed as a line instead. The bar is redrawn
    between rounds: a drawing thread would disturb the measurement.

    Args:
        namespace: the namespace of the library.
        console: where to draw.
        verbose: print a line for each finished cell instead of a bar.
    """

    def __init__(self, namespace: str, console: Console, *, verbose: bool = False) -> None:
        super().__init__(namespace, console, verbose=verbose, draws_itself=False)
        self._drawn = 0.0

    def start(self, sizes: int | None) -> None:
        """Set the number of sizes; None if unknown."""
        self._live.update(self._bar, total=sizes)

    def begin(self, cell: str) -> None:
        """Show the cell that is starting."""
        words = " ".join(printable(cell).split())
        self._live.update(self._bar, description=f"{self._namespace}  {words}", refresh=True)

    def round(self) -> None:
        """Redraw the bar, at most every 0.2 s."""
        now = time.monotonic()
        if now - self._drawn > _REFRESH_S:
            self._drawn = now
            self._live.refresh()

    def end(self, cell: Cell) -> None:
        """Print the cell if verbose."""
        if self._verbose:
            figures = [
                f"{row.name} {format_time(row.timing)} {format_spread(row.timing)}"
                if row.timing
                else f"{row.name} {row.status}: {row.reason}"
                for row in cell.rows
            ]
            words = f"{cell.op} on {cell.device}, {cell.threads} threads, {cell.size}, {cell.direction}"
            line = printable(f"{words}: {'; '.join(figures)}")
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def end_size(self) -> None:
        """Advance the bar by one size."""
        self._live.update(self._bar, advance=1, refresh=True)
