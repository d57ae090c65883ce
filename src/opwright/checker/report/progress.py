"""Shows the progress of a check."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from opwright.report.format import duration, printable
from opwright.report.live import LiveBar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.progress import TaskID

    from opwright.checker.verdict import Cell

    CellName = tuple[str, str, str]  # operator, runtime, device


class CheckProgress(LiveBar):
    """The progress of one check.

    On a terminal, it shows a progress bar and a line for each running cell, and removes them at the end. Elsewhere, it
    prints nothing. With `verbose`, it prints one line for each finished cell. Cells may run in several threads.

    Args:
        namespace: the library under check.
        console: the console to print to.
        verbose: print a line for each finished cell.
    """

    def __init__(self, namespace: str, console: Console, *, verbose: bool = False) -> None:
        super().__init__(namespace, console, verbose=verbose)
        self._failed = 0
        self._widths = (1, 1, 0)  # of operators, runtimes and devices
        self._running: dict[CellName, TaskID] = {}
        self._of_thread: dict[int, CellName] = {}

    def start(self, cells: Sequence[CellName]) -> None:
        """Set the cells of the check: the operator, the runtime and the device of each."""
        columns = [sorted(set(column), key=len) for column in zip(*cells, strict=True)]
        if columns:
            ops, runtimes, devices = columns
            self._widths = (len(ops[-1]), len(runtimes[-1]), len(devices[-1]) if len(devices) > 1 else 0)
        self._live.update(self._bar, total=len(cells))

    def begin(self, op: str, runtime: str, device: str) -> None:
        """Show that this thread starts a cell."""
        name = (op, runtime, device)
        self._of_thread[threading.get_ident()] = name
        self._running[name] = self._live.add_task(self._running_words(name, ""), total=None)

    def case(self, text: str) -> None:
        """Show the current case of this thread's cell."""
        name = self._of_thread[threading.get_ident()]
        self._live.update(self._running[name], description=self._running_words(name, text))

    def end(self, cell: Cell) -> None:
        """Show the outcome of a cell, even if the cell never started."""
        name = (cell.op, cell.runtime, cell.device)
        if name in self._running:
            self._live.remove_task(self._running.pop(name))
        self._failed += cell.status == "failed"
        failed = f"{self._namespace}: {self._failed} failed" if self._failed else self._namespace
        self._live.update(self._bar, description=failed, advance=1)
        if self._verbose:
            ran = cell.status in {"passed", "failed"}
            words = f"{self._columns(name)}  {cell.status}  {duration(cell.seconds) if ran else printable(cell.reason)}"
            self._console.print(words.rstrip(), markup=False, highlight=False, soft_wrap=True)

    def _running_words(self, name: CellName, case: str) -> str:
        op, runtime, device = name
        where = f" on {device}" if self._widths[2] else ""
        return f"  {runtime} {op.removeprefix(f'{self._namespace}::')}{where}  {' '.join(printable(case).split())}"

    def _columns(self, name: CellName) -> str:
        """A cell in aligned columns; the device is named if there are several."""
        op, runtime, device = name
        op_width, runtime_width, device_width = self._widths
        words = f"{runtime:<{runtime_width}}  {op:<{op_width}}"
        return f"{words}  {device:<{device_width}}" if device_width else words
