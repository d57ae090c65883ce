"""Runs a lane, the cells that run one after the other, in the process of a judge. Does not import torch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from opwright.checker.kinds import Kind
from opwright.checker.recorder import read
from opwright.checker.verdict import Cell, Failure
from opwright.errors import LoadError
from opwright.toolchain.fork_server import PLAIN
from opwright.toolchain.run import run
from opwright.toolchain.signals import ending

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opwright.checker.job import Job
    from opwright.checker.watcher import Watcher
    from opwright.toolchain.run import Completed


def run_lane(job: Job, environment: Mapping[str, str], watcher: Watcher, python: Sequence[str] = PLAIN) -> list[Cell]:
    """Run every cell of `job`.

    Args:
        job: what to run.
        environment: environment variables of the processes that run operators, in addition to this process's own.
        watcher: receives its progress.
        python: the prefix of a command line that runs a module: `python -m`, or that of a fork server.

    Raises:
        LoadError: the library could not be opened in the process.
    """
    cells: list[Cell] = []
    while len(cells) < len(job.cells):
        rest = replace(job, cells=job.cells[len(cells) :], python=list(python), environment=dict(environment))
        lane = _Judge(rest, watcher)
        completed = lane.run(python)
        cells += lane.cells
        if len(lane.cells) < len(rest.cells):
            cells.append(_died(rest, lane, completed))
            watcher.end(cells[-1])
    return cells


class _Judge:
    """The process of a judge, and its reports.

    Args:
        job: the cells.
        watcher: receives their progress.

    Attributes:
        cells: the finished cells.
        step: the step that runs.
    """

    def __init__(self, job: Job, watcher: Watcher) -> None:
        self._job = job
        self._watcher = watcher
        self.cells: list[Cell] = []
        self.step = ""

    def run(self, python: Sequence[str]) -> Completed:
        """Run the process until it exits.

        Raises:
            LoadError: the library could not be opened.
        """
        file = Path(self._job.work) / "job.json"
        self._job.write(file)
        unopened: list[str] = []

        def follow(line: str) -> None:
            event = read(line)
            if event is None:
                return
            if event["event"] == "begin":
                self._watcher.begin(event["op"], event["runtime"], event["device"])
            elif event["event"] == "case":
                self.step = event["text"]
                self._watcher.case(self.step)
            elif event["event"] == "unopened":
                unopened.append(event["message"])
            else:
                self.cells.append(Cell.from_json(event["cell"]))
                self._watcher.end(self.cells[-1])

        completed = run([*python, "opwright.checker.processes.judge_process", str(file)], on_line=follow, check=False)
        if unopened:
            raise LoadError(unopened[0])
        return completed


def _died(job: Job, judge: _Judge, completed: Completed) -> Cell:
    """The cell during which a judge died, because the reference ended its process."""
    op, runtime, device = job.cells[len(judge.cells)]
    # Not splitlines, which also splits after the mark of an event.
    lines = [line for line in completed.output.split("\n") if line and read(line) is None]
    failure = Failure(
        Kind.REFERENCE,
        judge.step,
        got=f"the process that runs the reference {ending(completed.exit_code)}",
        expected="a reference that returns a result or raises",
        detail="\n".join(lines)[-2000:],
    )
    return Cell(f"{job.namespace}::{op}", runtime, device, "failed", failures=(failure,))
