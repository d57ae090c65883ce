"""Checks the first calls of operators in fresh processes, from several threads, and how these processes exit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from opwright.checker.kinds import Kind
from opwright.checker.processes.channel import ForgedMessageError
from opwright.checker.processes.served_process import exceeded_limit_s, kind_of_ending, served_process
from opwright.checker.verdict import Failure
from opwright.toolchain.signals import ending

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opwright.checker.job import Job
    from opwright.checker.processes.verdicts import Verdicts

_PROCESSES = 6
_QUICK_PROCESSES = 2

Faults = dict[tuple[str, str], list[Failure]]


def check_first_calls(job: Job, verdicts: Verdicts, environment: Mapping[str, str], python: Sequence[str]) -> Faults:
    """The faults of the first calls of the operators in the `eager` cells of `job`, by operator and device."""
    subjects = [(op, device) for op, runtime, device in job.cells if runtime == "eager"]
    faults: Faults = {}
    if environment or not subjects:  # the cells report what a sanitizer finds
        return faults
    for _ in range(_QUICK_PROCESSES if job.options.quick else _PROCESSES):
        _run(job, verdicts, environment, python, faults)
        if faults:
            break
    return faults


def _run(job: Job, verdicts: Verdicts, environment: Mapping[str, str], python: Sequence[str], faults: Faults) -> None:
    step: dict[str, Any] = {}
    done = False
    file = Path(job.work) / "first_calls.json"
    with served_process(job, file, "opwright.checker.processes.first_calls_worker", environment, python) as process:
        try:
            while (message := process.receive()) is not None:
                if message["event"] == "done":
                    done = True
                elif message["event"] == "step":
                    step = message
                elif message["event"] == "unopened":
                    return  # the cells report it
                elif (fault := _fault(message, verdicts)) is not None:
                    faults.setdefault(_subject(job, message), []).append(fault)
        except ForgedMessageError:
            return  # the cells report it
    completed = process.completed
    limit_s = exceeded_limit_s(job, completed, completed.output)
    if completed.exit_code == 0 and not limit_s:
        return
    ended = f"not finished after {limit_s:g} s" if limit_s else f"the process {ending(completed.exit_code)}"
    output = completed.output.strip()[-2000:]
    if done:
        failure = Failure(Kind.EXIT, "after the calls", step.get("repro", ""), ended, "exit code 0", output)
    elif step:
        kind = Kind.HANG if limit_s else kind_of_ending(completed.exit_code, output)
        failure = Failure(kind, step["step"], step["repro"], ended, "a result, or an error", output)
    else:
        return  # it ended before the first call; the cells report that
    faults.setdefault(_subject(job, step), []).append(failure)


def _fault(message: dict[str, Any], verdicts: Verdicts) -> Failure | None:
    """The fault in a first call: a wrong result, or an error that the same call alone does not raise."""
    if message["event"] == "raised":
        got, expected = message["error"], "a result, as the same call alone returns afterwards"
    elif (wrong := verdicts.judge_first_call(message)) is not None:
        got, expected = wrong.got, wrong.expected
    else:
        return None
    code = f"# as the first calls of a process, from several threads:\n{message['repro']}"
    return Failure(Kind.RACE, message["name"], code, got, expected)


def _subject(job: Job, message: dict[str, Any]) -> tuple[str, str]:
    return f"{job.namespace}::{message['op']}", message["device"]
