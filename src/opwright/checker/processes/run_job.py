"""Runs cells in separate processes, judges their results, and starts another process after a crash."""

from __future__ import annotations

import signal
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opwright.checker.gpu_tool import command
from opwright.checker.kinds import Kind
from opwright.checker.processes.channel import ForgedMessageError
from opwright.checker.processes.first_calls import check_first_calls
from opwright.checker.processes.reproduction import complete
from opwright.checker.processes.served_process import exceeded_limit_s, kind_of_ending, served_process
from opwright.checker.processes.tool_log import ToolLog
from opwright.checker.processes.verdicts import Verdicts
from opwright.checker.sanitize import report_in
from opwright.checker.verdict import Cell, Failure, not_run_cell, shortened
from opwright.errors import LoadError
from opwright.toolchain.fork_server import PLAIN
from opwright.toolchain.signals import ending

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opwright.checker.job import Job
    from opwright.checker.processes.first_calls import Faults
    from opwright.checker.watcher import Watcher
    from opwright.toolchain.run import Completed

# After this many crashes in a group of cases, which vary the same property of the same argument, the rest of the group
# is skipped, because other groups may show other faults.
_MOST_IN_A_GROUP = 2
# A cell is abandoned after this many crashes outside groups, or this many calls that hang.
_MOST_CRASHES = 6
_MOST_HANGS = 2
# The time limit of steps after one hung, in seconds, so that users do not wait even longer for the report.
_AFTER_A_HANG_S = 60.0
# A cell is also abandoned after this many crashes and hangs in total.
_MOST_PROCESSES = 40


@dataclass
class _Progress:
    """The progress of the cells of a job: the finished ones, and the crashes of the current one.

    Attributes:
        cells: the finished cells.
        crashes: the faults that ended a process, one of each kind.
        skip: the steps that ended a process.
        groups: the group of each of these steps; empty if it has none.
        hangs: the number of these steps that hung.
        step: the event of the running step.
        verdicts: the verdicts on results.
        job: all cells.
        first_calls: the faults of first calls, which belong to eager mode, by operator and device; None before them.
    """

    verdicts: Verdicts

    job: Job
    first_calls: Faults | None = None
    cells: list[Cell] = field(default_factory=list)
    crashes: list[Failure] = field(default_factory=list)
    skip: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    hangs: int = 0
    step: dict[str, Any] = field(default_factory=dict)

    @property
    def skip_groups(self) -> list[str]:
        """The groups whose remaining steps are not tried."""
        return [group for group, count in Counter(self.groups).items() if group and count >= _MOST_IN_A_GROUP]

    @property
    def is_stopped(self) -> bool:
        """Whether a fault was found, and the check stops at the first one."""
        return self.job.options.fail_fast and any(cell.status == "failed" for cell in self.cells)

    def check_first_calls(self) -> Faults:
        """Make the first calls, unless they were made before, and return their faults."""
        if self.first_calls is None:
            self.first_calls = check_first_calls(self.job, self.verdicts, self.job.environment, self.job.python)
        return self.first_calls

    @property
    def exceeds_limits(self) -> bool:
        """Whether to abandon the cell."""
        several = self.groups.count("") >= _MOST_CRASHES or self.hangs >= _MOST_HANGS
        return several or len(self.skip) >= _MOST_PROCESSES


def run_job(
    job: Job, name: str, environment: Mapping[str, str], watcher: Watcher, python: Sequence[str] = PLAIN
) -> list[Cell]:
    """Run every cell of `job`; a crash costs only the step that caused it.

    Args:
        job: what to run.
        name: a name for its file.
        environment: environment variables to set in addition to this process's own.
        watcher: receives its progress.
        python: the prefix of a command line that runs a module: `python -m`, or that of a fork server.

    Raises:
        LoadError: the library could not be opened in the process.
    """
    verdicts = Verdicts(job)
    job = replace(job, python=list(python), environment=dict(environment))
    progress = _Progress(verdicts, job)
    if not job.options.fail_fast:  # otherwise only if the calls of eager mode show no fault, because this takes longer
        progress.check_first_calls()
    while len(progress.cells) < len(job.cells) and not progress.is_stopped:
        cells = job.cells[len(progress.cells) :]
        rest = replace(job, cells=cells, skip={"0": progress.skip}, skip_groups={"0": progress.skip_groups})
        run_once = _Process(rest, name, watcher, progress)
        completed = run_once.run(environment, python)
        if run_once.forged:
            _take(_failed(job, progress, run_once.forged), watcher, progress)
        elif run_once.last is not None:
            _take(_with_exit(_watched(run_once.last, run_once.log), completed), watcher, progress)
        elif progress.is_stopped:
            break
        elif len(progress.cells) < len(job.cells):
            failure = _after_death(job, completed, run_once, watcher, progress)
            if failure.kind is Kind.HANG:
                job = replace(job, step_limit_s=min(job.step_limit_s, _AFTER_A_HANG_S))
    for op, runtime, device in job.cells[len(progress.cells) :]:
        progress.cells.append(not_run_cell(job.namespace, (op, runtime, device)))
        watcher.end(progress.cells[-1])
    return progress.cells


class _Process:
    """One process that runs cells, and the messages that it sends.

    Args:
        job: the cells that are left.
        name: a name for its file.
        watcher: receives its progress.
        progress: the progress so far.

    Attributes:
        last: the last cell of the job, which is finished when the process has exited.
        forged: why its messages cannot be trusted; empty if they can.
        printed: its output since the cell started.
        log: the reports of a compute-sanitizer tool about it; None without a tool.
        unusable: the fault after which it could not continue, if it reported one.
    """

    def __init__(self, job: Job, name: str, watcher: Watcher, progress: _Progress) -> None:
        self._job = job
        self._file = Path(job.work) / f"{name}.json"
        self._watcher = watcher
        self._progress = progress
        self.last: Cell | None = None
        self.forged = ""
        self.printed: list[str] = []
        # Each process after a crash has a separate file.
        path = self._file.with_name(f"{name}-{len(progress.skip)}.log")
        self.log = ToolLog(job, path) if job.options.tool else None
        self.unusable: Failure | None = None

    def run(self, environment: Mapping[str, str], python: Sequence[str]) -> Completed:
        """Run the process until it exits.

        Raises:
            LoadError: the library could not be opened in the process.
        """
        self._progress.step = {}
        if self.log is not None:
            python = [*command(self._job.options.tool, self.log.path, self._job.kernels), *python]
        with served_process(self._job, self._file, "opwright.checker.processes.worker", environment, python) as process:
            self.printed = process.printed
            try:
                while (message := process.receive()) is not None:
                    if "ask" in message:
                        if (answer := self._progress.verdicts.answer(message)) is not None:
                            process.channel.send(answer)
                    else:
                        self._follow(message)
            except ForgedMessageError as error:
                self.forged = str(error)
        return process.completed

    def _follow(self, event: dict[str, Any]) -> None:
        kind = event["event"]
        if kind == "begin":
            self.printed.clear()
            self._progress.step = event
            self._progress.verdicts.begin()
            if not self._progress.crashes:  # otherwise the watcher already has it
                self._watcher.begin(event["op"], event["runtime"], event["device"])
        elif kind == "step":
            self._progress.step = event
            self._watcher.case(event["step"])
            if self.log is not None:
                self.log.begin(event)
        elif kind == "fault":
            self._progress.verdicts.keep(event["repro"])
        elif kind == "unusable":
            self.unusable = Failure.from_json(event["fault"])
        elif kind == "unopened":
            raise LoadError(event["message"])
        else:
            cell = Cell.from_json(event["cell"])
            if not self._progress.crashes:  # otherwise it has failed and skipped steps
                cell = self._progress.verdicts.verdict(cell)
            if len(self._progress.cells) + 1 < len(self._progress.job.cells):
                _take(cell, self._watcher, self._progress)
            else:
                self.last = cell


def _take(cell: Cell, watcher: Watcher, progress: _Progress) -> None:
    """Store a finished cell, with its earlier crashes."""
    if progress.crashes:
        known = {failure.kind for failure in progress.crashes}
        others = tuple(failure for failure in cell.failures if failure.kind not in known)
        cell = replace(cell, status="failed", failures=(*progress.crashes, *others))
    options = progress.job.options
    if cell.runtime == "eager" and not (options.fail_fast and cell.status == "failed"):
        faults = progress.check_first_calls().get((cell.op, cell.device), ())
        cell = _with(cell, [_attributed(fault, cell) for fault in faults if not _is_explained(fault, cell)])
    if options.reproduce:
        cell = complete(cell, progress.job, progress.verdicts)
    progress.cells.append(cell)
    progress.crashes, progress.skip, progress.groups, progress.hangs, progress.step = [], [], [], 0, {}
    watcher.end(cell)


def _failed(job: Job, progress: _Progress, forged: str) -> Cell:
    """The running cell, failed because its process sent a forged message."""
    op, runtime, device = job.cells[len(progress.cells)]
    step = progress.step
    failure = Failure(Kind.CHANNEL, step.get("step", ""), step.get("repro", ""), forged, "only messages of the check")
    return Cell(f"{job.namespace}::{op}", runtime, device, "failed", failures=(failure,))


def _watched(cell: Cell, log: ToolLog | None) -> Cell:
    """`cell`, with the fault that a compute-sanitizer tool reports, and the tool's messages about its own limits."""
    if log is None:
        return cell
    cell = replace(cell, reason="; ".join(filter(None, (cell.reason, *log.troubles()))))
    if (fault := log.fault()) is None:
        return cell
    # The tool stops a kernel at its first fault, and the GPU cannot be used afterwards.
    others = (failure for failure in cell.failures if failure.kind is not Kind.CRASH)
    return replace(cell, status="failed", failures=(fault, *others))


def _with_exit(cell: Cell, completed: Completed) -> Cell:
    """`cell`, the last one of its process, with the fault that the exit of the process shows."""
    if completed.exit_code == 0 or cell.status == "failed":
        return cell
    got = f"after all calls the process {ending(completed.exit_code)}"
    failure = Failure(Kind.EXIT, got=got, expected="exit code 0", detail=completed.output.strip()[-2000:])
    return _with(cell, (failure,))


def _with(cell: Cell, failures: Sequence[Failure]) -> Cell:
    """`cell` with further faults."""
    known = {failure.kind for failure in cell.failures}
    others = {failure.kind: failure for failure in reversed(failures) if failure.kind not in known}
    return replace(cell, status="failed", failures=(*cell.failures, *others.values())) if others else cell


def _is_explained(first_call: Failure, cell: Cell) -> bool:
    """Whether a wrong first call is unrelated to threads, because later calls of its sample are wrong too."""
    if first_call.kind is not Kind.RACE:
        return False
    # The name of a first call is that of the sample, followed by the number of the caller.
    lasting = (Kind.LATE, Kind.STATE)
    return any(fault.kind in lasting or first_call.case.startswith(f"{fault.case},") for fault in cell.failures)


def _attributed(first_call: Failure, cell: Cell) -> Failure:
    """`first_call`; its kind becomes a race if it ended the process and sequential calls show no fault."""
    if first_call.kind not in (Kind.CRASH, Kind.HEAP) or first_call.got.endswith(ending(-signal.SIGKILL)):
        return first_call
    only_among_others = all(fault.kind is Kind.RACE for fault in cell.failures)
    return replace(first_call, kind=Kind.RACE) if only_among_others else first_call


def _after_death(job: Job, completed: Completed, process: _Process, watcher: Watcher, progress: _Progress) -> Failure:
    """Record the step that ended the process, and return its fault; the next process skips it."""
    op, runtime, device = job.cells[len(progress.cells)]
    step, output = progress.step.get("step", ""), "\n".join(process.printed)
    by_tool = None
    if process.log is not None:
        by_tool = process.log.fault()
        output = f"{output}\n{process.log.text}"
    failure = (
        by_tool
        or process.unusable
        or _failure(progress.step, completed.exit_code, output, exceeded_limit_s(job, completed, output))
    )
    if failure.kind not in {earlier.kind for earlier in progress.crashes}:
        progress.crashes.append(failure)
        progress.verdicts.keep(failure.repro)
    progress.skip.append(step)
    progress.groups.append(progress.step.get("group", ""))
    progress.hangs += failure.kind is Kind.HANG
    # Every further call would report the same fault.
    reported = by_tool is not None or failure.kind is Kind.SANITIZER
    if reported or progress.exceeds_limits or not step or job.options.fail_fast:
        crashes = len(progress.skip)
        given_up = "" if job.options.fail_fast else f"given up after {crashes} crash{'es' * (crashes > 1)}"
        reason = "stopped at a sanitizer's first report: fix it, and check again" if reported else given_up
        failures = tuple(progress.crashes)
        _take(Cell(f"{job.namespace}::{op}", runtime, device, "failed", reason, failures=failures), watcher, progress)
    return failure


def _failure(step: Mapping[str, Any], exit_code: int, output: str, limit_s: float | None) -> Failure:
    """The fault of a step that ended the process; `limit_s` is the limit that it exceeded."""
    headline, report = report_in(output)
    kind = (
        Kind.LOAD
        if not step  # no cell has started: the library was being opened
        else Kind.SANITIZER
        if headline
        else Kind.HANG
        if limit_s
        # Before its first step, a cell draws samples, which runs the reference.
        else kind_of_ending(exit_code, output, Kind(step.get("crash", Kind.REFERENCE.value)))
    )
    is_of_reference = kind is Kind.REFERENCE
    process = "the process that runs the reference" if is_of_reference else "the process"
    ended = f"not finished after {limit_s:g} s" if limit_s else f"{process} {ending(exit_code)}"
    return Failure(
        kind,
        case=step.get("step", "before the first case" if step else "while the library was being opened"),
        repro=step.get("repro", ""),
        got=headline or ended,
        expected="a reference that returns a result or raises" if is_of_reference else "a result, or an error",
        detail=report or shortened(output.strip(), 2000),
    )
