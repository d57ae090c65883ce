"""Runs a cell once under each tool of compute-sanitizer, and merges the outcomes into one cell."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from opwright.checker.processes.lane import run_lane

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opwright.checker.job import Job
    from opwright.checker.kinds import Kind
    from opwright.checker.verdict import Cell, Failure
    from opwright.checker.watcher import Watcher


def run_under_tools(job: Job, tools: Sequence[str], environment: Mapping[str, str], watcher: Watcher) -> Cell:
    """Run the only cell of `job` under each of `tools` in turn, because a process runs under one tool.

    Args:
        job: the cell.
        tools: the names of the tools.
        environment: environment variables of the processes that run operators, in addition to this process's own.
        watcher: receives the progress of one cell.

    Raises:
        LoadError: the library could not be opened in the process.
    """
    shared = _OneCell(watcher)
    cells: list[Cell] = []
    for tool in tools:
        folder = Path(job.work) / tool
        folder.mkdir()
        shared.tool = tool
        part = replace(job, work=str(folder), options=replace(job.options, tool=tool))
        cells += run_lane(part, environment, shared)
        if job.options.fail_fast and cells[-1].status == "failed":
            break
    cell = _merged(cells)
    watcher.end(cell)
    return cell


class _OneCell:
    """A watcher that presents several runs of a cell as one."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._has_begun = False
        self.tool = ""

    def start(self, cells: Sequence[tuple[str, str, str]]) -> None:
        """Do nothing: the cells of the check are already known."""

    def begin(self, op: str, runtime: str, device: str) -> None:
        if not self._has_begun:
            self._has_begun = True
            self._watcher.begin(op, runtime, device)

    def case(self, text: str) -> None:
        self._watcher.case(f"{self.tool}: {text}")

    def end(self, cell: Cell) -> None:
        """Do nothing: the cell is done when it has run under all tools."""


def _merged(cells: Sequence[Cell]) -> Cell:
    """The outcomes of a cell under several tools as one: failed if it failed under any of them."""
    order = ("failed", "passed")
    worst = next((cell for status in order for cell in cells if cell.status == status), cells[0])
    failures: dict[Kind, Failure] = {}
    for cell in cells:
        for failure in cell.failures:
            failures.setdefault(failure.kind, failure)
    return replace(
        worst,
        reason="; ".join(dict.fromkeys(cell.reason for cell in cells if cell.reason)),
        cases=sum(cell.cases for cell in cells),
        rejected=sum(cell.rejected for cell in cells),
        failures=tuple(failures.values()),
        seconds=round(sum(cell.seconds for cell in cells), 3),
    )
