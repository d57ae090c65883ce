"""The process that runs cells, so that a crash costs one step, not the check.

The judge (`checker.processes.run_job`) starts it as `python -m opwright.checker.processes.worker JOB`, where JOB is a
JSON file, and receives its events, questions and results of calls through a channel.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from opwright.checker.behavior import process_state
from opwright.checker.behavior.lacks import lack
from opwright.checker.job import Job
from opwright.checker.kinds import Kind
from opwright.checker.processes.channel import connect
from opwright.checker.processes.hang_watch import HangWatch
from opwright.checker.processes.math_library import initialize_math_library
from opwright.checker.processes.remote_judge import Line, RemoteJudge
from opwright.checker.recorder import Emit, FirstFaultError, Recorder, UnusableProcessError
from opwright.checker.subject import Subject
from opwright.checker.verdict import Failure, shortened
from opwright.errors import BridgeError, OpwrightError, SpecError
from opwright.loader.open import open_library
from opwright.spec import library_at
from opwright.spec.difference import first_line

if TYPE_CHECKING:
    from opwright.checker.runtimes.runtime import Runtime
    from opwright.checker.verdict import Status


# The exit code of a process in which no further step can run.
_UNUSABLE = 1


def runtime_module(name: str) -> Runtime:
    """The runtime with that name."""
    return cast("Runtime", importlib.import_module(f"opwright.checker.runtimes.{name.replace('-', '_')}"))


def main() -> None:
    """Run the cells of a job."""
    initialize_math_library()
    job = Job.read(Path(sys.argv[1]))
    line = job_line(job)
    watch = HangWatch(job.step_limit_s)

    def emit(event: dict[str, Any]) -> None:
        watch.restart()
        line.tell(event)

    built = None if job.shared_object is None else Path(job.shared_object)
    # PyTorch imports this with the first `torch.func.vjp`. It sets an environment variable, which is part of the state.
    importlib.import_module("torch._dynamo")
    before = process_state.state()
    try:
        library = library_at(job.path)
        if library.namespace != job.namespace:
            msg = f"{job.path} describes the library {library.namespace!r}, but the check expects {job.namespace!r}"
            raise SpecError(msg)  # noqa: TRY301  reported like all errors here
        open_library(library, built=built)
    except OpwrightError as error:
        emit({"event": "unopened", "message": str(error)})
        return
    except Exception as error:
        emit({"event": "unopened", "message": f"{first_line(error)}\n{traceback.format_exc(limit=-4)}"})
        return
    _freeze_modules()
    subjects: dict[tuple[str, str], Subject] = {}
    for number, (op, runtime, device) in enumerate(job.cells):
        if (op, device) not in subjects:
            judge = RemoteJudge(line, library.ops[op], device)
            subjects[op, device] = Subject(library.ops[op], built, device, job.options, Path(job.work), judge)
            subjects[op, device].state_before_loading = before
        skip, groups = (frozenset(given.get(str(number), ())) for given in (job.skip, job.skip_groups))
        try:
            passed = run_cell(subjects[op, device], runtime, skip, emit, groups)
        except UnusableProcessError:
            os._exit(_UNUSABLE)  # destructors that use the GPU would fail, or wait for it
        if job.options.fail_fast and not passed:
            break
    _freeze_modules()


def job_line(job: Job) -> Line:
    """The channel to the judge of a job."""
    return Line(connect(Path(job.socket), job.key))


def _freeze_modules() -> None:
    """Freeze PyTorch's objects. Otherwise each garbage collection takes 0.1 s, and the exit takes 0.5 s."""
    gc.freeze()


def run_cell(
    subject: Subject, name: str, skip: frozenset[str], emit: Emit, skip_groups: frozenset[str] = frozenset()
) -> bool:
    """Run the runtime `name` on `subject` without the skipped steps, and return whether it passed."""
    recorder = Recorder(
        *(subject.op.qualified_name, name, subject.device, emit, skip, skip_groups),
        fail_fast=subject.options.fail_fast,
        watch=subject.watch,
    )
    emit({"event": "begin", "op": subject.op.qualified_name, "runtime": name, "device": subject.device})
    status: Status | None = None
    reason = ""
    with contextlib.suppress(FirstFaultError):
        status, reason = _run(subject, name, recorder)
        recorder.settle()
    cell = recorder.cell(status, reason)
    emit({"event": "end", "cell": cell.to_json()})
    return cell.status != "failed"


def _run(subject: Subject, name: str, recorder: Recorder) -> tuple[Status | None, str]:
    """Run a runtime, or return the status and the reason of a cell that is not run."""
    try:
        runtime = runtime_module(name)
        if reason := _missing_device(subject) or runtime.why_not(subject):
            return "not applicable", reason
        if missing := lack(subject, name):
            return "lacking", missing
        if subject.excluded:
            recorder.note(subject.excluded)
        runtime.run(subject, recorder)
    except SpecError as error:
        recorder.fail(Failure(Kind.REFERENCE, got=str(error), expected="a description that can be checked"))
    except BridgeError as error:
        output = shortened(error.output, 4000)
        recorder.fail(Failure(Kind.BRIDGE, got=str(error), expected="a bridge that builds", detail=output))
    except OpwrightError as error:
        recorder.fail(Failure(Kind.RUNTIME, got=str(error), expected="a runtime that can be set up"))
    except Exception as error:
        recorder.fail(Failure(Kind.RUNTIME, got=first_line(error), detail=traceback.format_exc(limit=-6)))
    return None, ""


def _missing_device(subject: Subject) -> str:
    import torch

    if subject.device == "cuda" and not torch.cuda.is_available():
        return "no GPU that this PyTorch can use"
    return ""


if __name__ == "__main__":
    main()
