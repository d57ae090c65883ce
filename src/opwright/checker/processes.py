"""Runs cells in separate processes, and starts another process after a crash."""

from __future__ import annotations

import re
import signal
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opwright.checker.kinds import Kind
from opwright.checker.recorder import read
from opwright.checker.sanitize import report_in
from opwright.checker.verdict import Cell, Failure
from opwright.errors import LoadError
from opwright.toolchain.fork_server import PLAIN
from opwright.toolchain.run import run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opwright.checker.job import Job
    from opwright.checker.watcher import Watcher

# After this many crashes in a group of cases, which vary the same thing in the same argument, the others of the group
# are not tried: other groups may show other faults.
_MOST_IN_A_GROUP = 2
# A cell with this many crashes outside of groups, or this many calls that do not end, is given up,
_MOST_CRASHES = 6
# and so is one with this many in all.
_MOST_PROCESSES = 40
# The process itself ends when a step takes too long. This is for processes that it leaves behind.
_LONGEST_S = 3600.0
# What its watchdog (faulthandler) prints in that case.
_TOO_LONG = re.compile(r"^Timeout \(.*\)!$", re.MULTILINE)


@dataclass
class _Progress:
    """The progress of the cells of a job: the finished ones, and the crashes of the one that is next.

    Attributes:
        cells: the finished cells.
        crashes: the faults that ended a process, one of each kind.
        skip: the steps that ended a process.
        groups: the group of each of them; empty if it has none.
        hangs: how many of them did not end.
        step: the event of the step that runs.
    """

    cells: list[Cell] = field(default_factory=list)
    crashes: list[Failure] = field(default_factory=list)
    skip: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    hangs: int = 0
    step: dict[str, Any] = field(default_factory=dict)

    @property
    def skip_groups(self) -> list[str]:
        """The groups of which no further step is tried."""
        return [group for group, count in Counter(self.groups).items() if group and count >= _MOST_IN_A_GROUP]

    @property
    def exceeds_limits(self) -> bool:
        """Whether the cell is to be given up."""
        several = max(self.groups.count(""), self.hangs) >= _MOST_CRASHES
        return several or len(self.skip) >= _MOST_PROCESSES


def run_job(
    job: Job, name: str, environment: Mapping[str, str], watcher: Watcher, python: Sequence[str] = PLAIN
) -> list[Cell]:
    """Run every cell of `job`; a crash of a process costs only the step that caused it.

    Args:
        job: what to run.
        name: a name for its file.
        environment: variables to set in addition to this process's own.
        watcher: receives its progress.
        python: the first words of a command line that runs a module: `python -m`, or those of a fork server.

    Raises:
        LoadError: the library could not be opened in the process.
    """
    progress = _Progress()
    while len(progress.cells) < len(job.cells):
        cells = job.cells[len(progress.cells) :]
        rest = replace(job, cells=cells, skip={"0": progress.skip}, skip_groups={"0": progress.skip_groups})
        completed, output, timed_out = _run_once(rest, name, environment, watcher, progress, python)
        if len(progress.cells) == len(job.cells):
            break
        _after_death(job, completed, output, watcher, progress, timed_out=timed_out)
    return progress.cells


def _run_once(
    job: Job, name: str, environment: Mapping[str, str], watcher: Watcher, progress: _Progress, python: Sequence[str]
) -> tuple[int, str, bool]:
    file = Path(job.work) / f"{name}.json"
    job.write(file)
    printed: list[str] = []
    progress.step = {}

    def follow(line: str) -> None:
        event = read(line)
        if event is None:
            printed.append(line)
            return
        kind = event["event"]
        if kind == "begin":
            printed.clear()
            progress.step = event
            if not progress.crashes:  # otherwise it has begun already
                watcher.begin(event["op"], event["runtime"], event["device"])
        elif kind == "step":
            progress.step = event
            watcher.case(event["step"])
        elif kind == "unopened":
            raise LoadError(event["message"])
        else:
            _take(Cell.from_json(event["cell"]), watcher, progress)

    command = [*python, "opwright.checker.worker", str(file)]
    completed = run(command, env=environment, on_line=follow, check=False, timeout_s=_LONGEST_S)
    return completed.exit_code, "\n".join(printed), completed.timed_out


def _take(cell: Cell, watcher: Watcher, progress: _Progress) -> None:
    """Store a finished cell, with its earlier crashes."""
    if progress.crashes:
        known = {failure.kind for failure in progress.crashes}
        others = tuple(failure for failure in cell.failures if failure.kind not in known)
        cell = replace(cell, status="failed", failures=(*progress.crashes, *others))
    progress.cells.append(cell)
    progress.crashes, progress.skip, progress.groups, progress.hangs, progress.step = [], [], [], 0, {}
    watcher.end(cell)


def _after_death(
    job: Job, exit_code: int, output: str, watcher: Watcher, progress: _Progress, *, timed_out: bool
) -> None:
    """Record the step that ended the process; the next process skips it."""
    op, runtime, device = job.cells[len(progress.cells)]
    step = progress.step.get("step", "")
    limit_s = _LONGEST_S if timed_out else job.step_limit_s if _TOO_LONG.search(output) else None
    failure = _failure(progress.step, exit_code, output, limit_s)
    if failure.kind not in {earlier.kind for earlier in progress.crashes}:
        progress.crashes.append(failure)
    progress.skip.append(step)
    progress.groups.append(progress.step.get("group", ""))
    progress.hangs += failure.kind is Kind.HANG
    reported = failure.kind is Kind.SANITIZER  # each further call would report the same again
    if reported or progress.exceeds_limits or not step:
        crashes = len(progress.skip)
        given_up = f"given up after {crashes} crash{'es' * (crashes > 1)}"
        reason = "a sanitizer's first report ends it: fix that, and check again" if reported else given_up
        failures = tuple(progress.crashes)
        _take(Cell(f"{job.namespace}::{op}", runtime, device, "failed", reason, failures=failures), watcher, progress)


def _failure(step: Mapping[str, Any], exit_code: int, output: str, limit_s: float | None) -> Failure:
    """The fault of a step that ended the process; `limit_s` is the limit that it exceeded."""
    headline, report = report_in(output)
    # A kill from outside does not indicate a fault of the step.
    meant = Kind.CRASH.value if exit_code == -signal.SIGKILL else step.get("crash", Kind.CRASH.value)
    kind = Kind.SANITIZER if headline else Kind.HANG if limit_s else Kind(meant)
    ended = f"no end after {limit_s:g} s" if limit_s else f"the process {_ending(exit_code)}"
    return Failure(
        kind,
        case=step.get("step", "before the first case"),
        repro=step.get("repro", ""),
        got=headline or ended,
        expected="a result, or an error",
        detail=report or output.strip()[-2000:],
    )


def _ending(exit_code: int) -> str:
    if exit_code >= 0:
        return f"ended with exit code {exit_code}"
    if exit_code == -signal.SIGKILL:
        return "was ended by SIGKILL: from outside, as the system does when memory is short"
    try:
        return f"was ended by {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"was ended by signal {-exit_code}"
