"""The process of first calls: it first calls each operator from several threads at once, and then ends.

`checker.processes.first_calls` starts it as `python -m opwright.checker.processes.first_calls_worker JOB`.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from opwright.checker.behavior.same_call import shifted
from opwright.checker.cases.case import Case, Family
from opwright.checker.job import Job
from opwright.checker.processes.remote_judge import case_message
from opwright.checker.processes.worker import job_line
from opwright.checker.subject import Subject
from opwright.loader.open import open_library
from opwright.spec import library_at

if TYPE_CHECKING:
    from opwright.checker.processes.remote_judge import Line

_CALLERS = 4


def main() -> None:
    """Make the first calls, send their results to the judge, and end as a C++ program does."""
    job = Job.read(Path(sys.argv[1]))
    line = job_line(job)
    built = None if job.shared_object is None else Path(job.shared_object)
    try:
        library = library_at(job.path)
        open_library(library, built=built)
    except Exception as error:
        line.tell({"event": "unopened", "message": str(error)})
        return
    for op, runtime, device in job.cells:
        if runtime == "eager" and (device == "cpu" or torch.cuda.is_available()):
            _call_first(Subject(library.ops[op], built, device, job.options, Path(job.work)), line)
    line.tell({"event": "done"})
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    # Destroy static objects; Python's own exit may not get that far.
    ctypes.CDLL(None).exit(0)


def _call_first(subject: Subject, line: Line) -> None:
    """Call the operator from several threads at once, each with other numbers."""
    sample = subject.samples[0]
    given = [pytree.tree_map_only(Tensor, Tensor.clone, shifted(sample.fresh(), at)) for at in range(_CALLERS)]
    cases = [Case(f"{sample.name}, of first caller {at}", Family.SAMPLE, one) for at, one in enumerate(given)]
    where: dict[str, Any] = {"op": subject.op.name, "device": subject.device, "repro": subject.code(sample)}
    line.tell({"event": "step", "step": f"{sample.name}: first calls, from {_CALLERS} threads at once", **where})
    results: list[list[Any] | None] = [None] * _CALLERS
    ready = threading.Barrier(_CALLERS)
    arguments = [case.fresh() for case in cases]

    def call(at: int) -> None:
        ready.wait()
        try:
            results[at] = subject.call(arguments[at])
        except Exception:  # an error is judged where the calls are made one by one
            results[at] = None

    callers = [threading.Thread(target=call, args=(at,)) for at in range(_CALLERS)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    for case, found in zip(cases, results, strict=True):
        if found is not None and not subject.is_outside(case):
            line.tell({"event": "result", **where, **case_message(case), "results": found})


if __name__ == "__main__":
    main()
