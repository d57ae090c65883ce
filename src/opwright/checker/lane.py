"""Runs a lane, the cells that are run one after the other, in the process of a judge. Imports no torch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from opwright.checker.recorder import read
from opwright.checker.verdict import Cell
from opwright.errors import LoadError, OpwrightError
from opwright.toolchain.fork_server import PLAIN
from opwright.toolchain.run import run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opwright.checker.job import Job
    from opwright.checker.watcher import Watcher


def run_lane(job: Job, environment: Mapping[str, str], watcher: Watcher, python: Sequence[str] = PLAIN) -> list[Cell]:
    """Run every cell of `job`.

    Args:
        job: what to run.
        environment: variables of the processes that run operators, in addition to this process's own.
        watcher: receives its progress.
        python: the first words of a command line that runs a module: `python -m`, or those of a fork server.

    Raises:
        LoadError: the library could not be opened in the process.
        OpwrightError: the judge itself has failed.
    """
    file = Path(job.work) / "job.json"
    replace(job, python=list(python), environment=dict(environment)).write(file)
    cells: list[Cell] = []
    unopened: list[str] = []

    def follow(line: str) -> None:
        event = read(line)
        if event is None:
            return
        if event["event"] == "begin":
            watcher.begin(event["op"], event["runtime"], event["device"])
        elif event["event"] == "case":
            watcher.case(event["text"])
        elif event["event"] == "unopened":
            unopened.append(event["message"])
        else:
            cells.append(Cell.from_json(event["cell"]))
            watcher.end(cells[-1])

    completed = run([*python, "opwright.checker.judge_process", str(file)], on_line=follow, check=False)
    if unopened:
        raise LoadError(unopened[0])
    if len(cells) < len(job.cells):
        msg = f"the judge of {job.namespace} has ended with exit code {completed.exit_code}: {completed.output[-2000:]}"
        raise OpwrightError(msg)
    return cells
