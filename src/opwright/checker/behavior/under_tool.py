"""Calls the operator under a tool of compute-sanitizer, a few times only because each call is slow."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from opwright.checker.cases.case import Family
from opwright.checker.cases.variation import choice
from opwright.checker.kinds import Kind
from opwright.checker.verdict import Failure
from opwright.spec.difference import described, first_line

if TYPE_CHECKING:
    from opwright.checker.cases.case import Case
    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject

# The number of variations of sizes, which expose wrong indices, and the number of other variations.
_VARIATIONS = 12
_QUICK_VARIATIONS = 3
_LEFT_OUT = (Family.BAD_DTYPE, Family.BAD_RANK, Family.BAD_DEVICE, Family.FAR)
# After this time, the tool has written its findings in a call to its file, before the next call starts.
_WRITTEN_S = 0.05


def check_under_tool(subject: Subject, recorder: Recorder) -> None:
    """Call the operator with its samples and some variations; the parent process reads the tool's report.

    Memory is not poisoned, because that would initialize it for initcheck.
    """
    most = _QUICK_VARIATIONS if subject.options.quick else _VARIATIONS
    varied = [case for case in subject.varied if case.family not in _LEFT_OUT]
    of_sizes = [case for case in varied if case.size is not None]
    others = [case for case in varied if case.size is None]
    chosen = choice(subject.options.seed)
    drawn = [case for cases in (of_sizes, others) for case in chosen.sample(cases, min(most, len(cases)))]
    recorder.note(
        f"under compute-sanitizer, only the samples and {len(drawn)} of {len(varied)} variations were called; results "
        "of variations were not compared, and the other steps of the eager runtime were skipped"
    )
    for case in (*subject.samples, *drawn):
        if not _call(subject, recorder, case):
            return


def _call(subject: Subject, recorder: Recorder, case: Case) -> bool:
    """Call the operator. Returns whether the GPU is still usable."""
    code = subject.code(case)
    if not recorder.begin(case.name, code, group=case.group):
        return True
    # The judge records the step before it answers, so the tool's report on the call is written after that.
    wanted = subject.expected(case)
    if wanted.refusal or wanted.unknown:
        return True
    try:
        results = subject.call(case.fresh())
        _finish(subject)
    except Exception as error:
        if (lost := _why_unusable(subject)) is not None:
            got = f"{lost}: no further call works"
            recorder.fail(Failure(Kind.CRASH, case.name, code, got, "a result, or an error", str(error)))
            return False
        if case.claimed:
            goal = ", ".join(described(result) for result in wanted.own)
            recorder.fail(Failure(Kind.RAISES, case.name, code, first_line(error), goal, str(error)))
        else:
            recorder.rejected()
        return True
    fault = subject.judge(case, results) if case.family is Family.SAMPLE else None
    if fault is None:
        recorder.ok()
    else:
        recorder.fail(replace(fault, case=case.name, repro=code))
    return True


def _finish(subject: Subject) -> None:
    """Wait for the call's kernels, and for the tool's report on them."""
    if subject.device == "cuda":
        torch.cuda.synchronize()
    time.sleep(_WRITTEN_S)


def _why_unusable(subject: Subject) -> str | None:
    """The error that the GPU reports after a kernel was stopped; None if it is usable."""
    try:
        _finish(subject)
    except Exception as error:
        return first_line(error)
    return None
