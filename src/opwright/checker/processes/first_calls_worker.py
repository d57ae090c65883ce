"""The process of first calls: calls each operator from several threads at the same time, and then exits.

`checker.processes.first_calls` starts it as `python -m opwright.checker.processes.first_calls_worker JOB`.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from opwright.checker.behavior.same_call import shifted_case
from opwright.checker.cases.case import Case, Family
from opwright.checker.job import Job
from opwright.checker.processes.hang_watch import HangWatch
from opwright.checker.processes.math_library import initialize_math_library
from opwright.checker.processes.remote_judge import case_message
from opwright.checker.processes.worker import job_line
from opwright.checker.subject import Subject
from opwright.loader.open import open_library
from opwright.spec import derive, library_at
from opwright.spec.difference import first_line

if TYPE_CHECKING:
    from opwright.checker.processes.remote_judge import Line

_CALLERS = 4


def main() -> None:
    """Make the first calls, send their results to the judge, and exit as a C++ program does."""
    initialize_math_library()
    job = Job.read(Path(sys.argv[1]))
    line = job_line(job)
    watch = HangWatch(job.step_limit_s)
    built = None if job.shared_object is None else Path(job.shared_object)
    try:
        library = library_at(job.path)
        open_library(library, built=built)
    except Exception as error:
        line.tell({"event": "unopened", "message": str(error)})
        return
    for op, runtime, device in job.cells:
        if runtime == "eager" and (device == "cpu" or torch.cuda.is_available()):
            subject = Subject(library.ops[op], built, device, job.options, Path(job.work))
            _call_first(subject, line, watch)
            if subject.watch is not None and list(subject.watch.faults()):
                os._exit(0)  # sequential calls report it; destructors that use the GPU may fail
    line.tell({"event": "done"})
    watch.restart()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    # Destroy static objects, which Python's own exit may not reach.
    ctypes.CDLL(None).exit(0)


def _call_first(subject: Subject, line: Line, watch: HangWatch) -> None:
    """Call the operator from several threads at the same time, each with other numbers."""
    sample = subject.samples[0]
    moved = [shifted_case(subject, sample, at).arguments for at in range(_CALLERS)]
    given = [derive.with_tensors(one, Tensor.clone) for one in moved]
    cases = [Case(f"{sample.name}, first caller {at}", Family.SAMPLE, one) for at, one in enumerate(given)]
    where: dict[str, Any] = {"op": subject.op.name, "device": subject.device, "repro": subject.code(sample)}
    line.tell({"event": "step", "step": f"{sample.name}: first calls, from {_CALLERS} threads", **where})
    results: list[list[Any]] = [[]] * _CALLERS
    errors = [""] * _CALLERS
    ready = threading.Barrier(_CALLERS)
    arguments = [case.fresh() for case in cases]

    def call(at: int) -> None:
        ready.wait()
        try:
            results[at] = subject.call(arguments[at])
        except Exception as error:
            errors[at] = first_line(error)

    callers = [threading.Thread(target=call, args=(at,)) for at in range(_CALLERS)]
    watch.restart()
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    raised = [bool(error) and _succeeds(subject, case) for error, case in zip(errors, cases, strict=True)]
    watch.stop()  # the judge may take longer to receive the results
    if subject.watch is not None and any(fault.is_final for fault in subject.watch.faults()):
        return  # the results cannot be read either
    for at, case in enumerate(cases):
        if raised[at]:
            line.tell({"event": "raised", **where, "name": case.name, "error": errors[at]})
        elif not errors[at]:  # an error that the call alone also raises is judged in sequential calls
            line.tell({"event": "result", **where, **case_message(case), "results": results[at]})


def _succeeds(subject: Subject, case: Case) -> bool:
    """Whether the call alone raises no error."""
    try:
        subject.call(case.fresh())
    except Exception:
        return False
    return True


if __name__ == "__main__":
    main()
