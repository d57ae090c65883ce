"""Runs a saved model in the probe program, which reads requests from one file and writes responses to another."""

from __future__ import annotations

import json
import re
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opwright.probe.exchange import Response, read_responses, write_requests
from opwright.toolchain.run import Completed, run
from opwright.toolchain.signals import signal_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

# The output of a model may precede these on their line.
_PROGRESS = re.compile(r"(?:request (\d+)|answered)$", flags=re.MULTILINE)
_SUMMARY = re.compile(r'\{"python_mapped": .*\}$', flags=re.MULTILINE)
_REASON = re.compile(r"^probe: (.*)$", flags=re.MULTILINE)
# The message of C++ for an uncaught exception.
_THROWN = re.compile(r"^ *what\(\): *(.*)$", flags=re.MULTILINE)


@dataclass(frozen=True)
class ProbeRun:
    """One run of the probe.

    Attributes:
        responses: one for each request; empty if the probe did not finish.
        error: why it did not finish, in one line; otherwise empty.
        signal: the signal that terminated it, such as `SIGSEGV`; empty if none did.
        request: the index, from 0, of the request during which it ended; None outside requests.
        timed_out: whether it was killed because it exceeded its time limit.
        python_mapped: whether a library of Python was mapped into the process; None if it did not finish.
        load_seconds: the time that loading the model took.
        median_run_seconds: the median over the requests that raised no error.
        command: the command line, ready to paste into a shell.
        output: the complete output, including that of libraries and models.
    """

    responses: tuple[Response, ...]
    error: str
    signal: str
    request: int | None
    timed_out: bool
    python_mapped: bool | None
    load_seconds: float
    median_run_seconds: float
    command: str
    output: str


def run_probe(
    program: Path,
    model: Path,
    requests: Sequence[tuple[Any, ...]],
    *,
    work: Path,
    libraries: Sequence[Path] = (),
    backward: bool = False,
    timeout_s: float | None = None,
    env: Mapping[str, str] | None = None,
) -> ProbeRun:
    """Run `model` on each of `requests` in a process of `program`.

    Tensors keep their layout, offset and `requires_grad`. Tensors that share memory do not share it in the probe.

    Args:
        program: the path that `build_probe` returned.
        model: a TorchScript model (`.pt`), or a package that AOTInductor compiled (`.pt2`), which receives
            only the tensors of a request, one after the other.
        requests: the positional arguments of each call: tensors, numbers, strings, None, and tuples or lists of them.
        work: a folder for the files of requests and responses.
        libraries: shared objects to open first, in this order.
        backward: also compute gradients; TorchScript only.
        timeout_s: kill the process after this many seconds.
        env: environment variables to set in addition to this process's own.

    Raises:
        ToolchainError: `program` does not exist.
    """
    asked, answered = work / "requests.pt", work / "responses.pt"
    write_requests(requests, asked)
    answered.unlink(missing_ok=True)
    options = [word for library in libraries for word in ("--library", library)]
    # A package is unpacked into a temporary folder, which a killed process would leave behind.
    with tempfile.TemporaryDirectory(dir=work) as temporary:
        completed = run(
            [program, *options, *(["--backward"] if backward else []), model, asked, answered],
            env={"TMPDIR": temporary, **(env or {})},
            check=False,
            timeout_s=timeout_s,
        )
    summaries = _SUMMARY.findall(completed.output)
    summary = json.loads(summaries[-1]) if summaries else {}
    reached = _PROGRESS.findall(completed.output)
    within = int(reached[-1]) if reached and reached[-1] else None
    where = f"in request {within}" if within is not None else f"{'after' if reached else 'before'} the requests"
    finished = completed.exit_code == 0 and not completed.timed_out and bool(summary)
    return ProbeRun(
        responses=read_responses(answered) if finished else (),
        error="" if finished else _error(completed, where, timeout_s),
        signal=_signal(completed),
        request=within,
        timed_out=completed.timed_out,
        python_mapped=summary.get("python_mapped"),
        load_seconds=summary.get("load_seconds", 0.0),
        median_run_seconds=summary.get("median_run_seconds", 0.0),
        command=completed.command,
        output=completed.output,
    )


def _error(completed: Completed, where: str, timeout_s: float | None) -> str:
    reasons = _REASON.findall(completed.output)
    if completed.timed_out:
        return f"the probe was killed {where}: it exceeded its time limit of {timeout_s:g} s"
    if completed.exit_code < 0:
        thrown = _THROWN.findall(completed.output)
        return f"the probe was terminated {where} by {_signal(completed)}" + (f": {thrown[-1]}" if thrown else "")
    if reasons:
        return str(reasons[-1])
    last_line = completed.output.rstrip("\n").rpartition("\n")[2]
    reported = "" if _PROGRESS.search(last_line) else last_line
    return f"the probe exited {where} with status {completed.exit_code}" + (f": {reported}" if reported else "")


def _signal(completed: Completed) -> str:
    return signal_name(-completed.exit_code) if completed.exit_code < 0 else ""
