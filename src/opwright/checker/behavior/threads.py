"""Checks calls from several threads, and calls that use several threads."""

from __future__ import annotations

import functools
import time
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from opwright.checker.behavior.branches import branches
from opwright.checker.behavior.concurrency import run_concurrently
from opwright.checker.behavior.same_call import changed_answer, copies, shifted_case
from opwright.checker.behavior.thread_count import threads
from opwright.checker.behavior.widest import widest, widest_variation
from opwright.checker.cases.case import Case
from opwright.checker.kinds import Kind
from opwright.checker.verdict import Failure
from opwright.spec import derive
from opwright.spec.difference import first_line

if TYPE_CHECKING:
    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject

_CALLERS = 4
# Threads are started in several groups: the scheduler may never run the threads of one group concurrently.
_GROUPS = 3
_GROUP_SECONDS = 0.4
_LEAST_GROUP_SECONDS = 0.1
_CALLS_EACH = 60  # in a group
_CALLS_IN_A_ROW = 10
_BYTES_IN_A_ROW = 2**26
_SECONDS_IN_A_ROW = 0.02
_REPEATED = 20


def check_threads(subject: Subject, recorder: Recorder) -> None:
    """Check that results do not depend on the number of calling threads, or on the number of threads in the kernel."""
    if recorder.failed or recorder.has_died:
        return
    # Only long calls overlap: between short ones, each caller waits for Python's global lock.
    largest = widest_variation(subject, recorder) or widest(subject.samples, subject, recorder)
    cases = [case for case in (subject.samples[0], largest) if case is not None]
    inside = not subject.options.alone
    for case in {case.name: case for case in (*cases, *branches(subject, recorder))}.values():
        code = subject.code(case)
        if inside and recorder.begin(f"{case.name}: with 1 thread and with several", code, group=case.group):
            _check_thread_counts(subject, recorder, case)
        if recorder.begin(f"{case.name}: from {_CALLERS} threads at once", code, Kind.RACE, case.group):
            # Each caller uses one thread: while a caller waits for its own threads, it cannot race.
            with threads(1):
                _check_callers(subject, recorder, case)


def _check_thread_counts(subject: Subject, recorder: Recorder, case: Case) -> None:
    several = max(torch.get_num_threads(), 4)
    alone, error = _call(subject, case, 1)
    outcomes = (_call(subject, case, several) for _ in range(_REPEATED))
    if error:
        if not next(outcomes)[1]:  # other steps report an operator that raises with any number of threads
            wanted = f"a result, as with {several} threads"
            recorder.fail(Failure(Kind.THREADS, case.name, _code(subject, case, 1), f"with 1 thread: {error}", wanted))
        return
    changes = [raised or changed_answer(subject, case, results, alone) for results, raised in outcomes]
    found = list(filter(None, changes))
    if not found:
        recorder.ok()
        return
    # A result that is always wrong combines its parts wrongly; one that is sometimes wrong is a data race.
    always = len(found) == _REPEATED and len(set(found)) == 1
    kind = Kind.THREADS if always else Kind.RACE
    got = f"with {several} threads, {len(found)} of {_REPEATED} times: {found[0]}"
    recorder.fail(Failure(kind, case.name, _code(subject, case, several), got, "the result of one thread"))


def _call(subject: Subject, case: Case, count: int) -> tuple[list[Any], str]:
    """Return the results of a call that uses `count` threads, or the error that it raises."""
    try:
        with threads(count):
            return copies(subject.call(case.fresh())), ""
    except Exception as error:
        return [], first_line(error)


def _code(subject: Subject, case: Case, count: int) -> str:
    """Return the repro of a call that uses `count` threads."""
    *lines, call = subject.code(case).splitlines()
    return "\n".join([*lines, f"torch.set_num_threads({count})", call])


def _check_callers(subject: Subject, recorder: Recorder, case: Case) -> None:
    """Check concurrent callers with different values, which shared state would mix up."""
    started = time.perf_counter()
    try:
        inputs = [shifted_case(subject, case, at).arguments for at in range(_CALLERS)]
        alone = [copies(subject.call(derive.with_tensors(given, Tensor.clone))) for given in inputs]
    except Exception:
        return
    once = (time.perf_counter() - started) / _CALLERS
    nbytes = sum(tensor.nbytes for tensor in pytree.tree_leaves((inputs[0], alone[0])) if isinstance(tensor, Tensor))
    calls = [Case(f"{case.name}, of caller {at}", case.family, given) for at, given in enumerate(inputs)]
    for call in calls:
        subject.expected(call)  # computed here: a Python-only operator is its own reference, and may race too
    in_a_row = max(1, min(_CALLS_IN_A_ROW, _BYTES_IN_A_ROW // max(nbytes, 1), int(_SECONDS_IN_A_ROW / once)))

    def several(at: int) -> str | None:
        # Several calls in a row, compared afterwards: the more time callers spend in calls, the more calls overlap.
        given = [derive.with_tensors(inputs[at], Tensor.clone) for _ in range(in_a_row)]
        try:
            results = [subject.call(arguments) for arguments in given]
            return next(
                filter(None, (changed_answer(subject, calls[at], result, alone[at]) for result in results)), None
            )
        except Exception as error:
            return first_line(error)

    callers = [functools.partial(several, at) for at in range(_CALLERS)]
    # A sanitizer detects a race only while two calls overlap, so it gets the full time.
    least_s = _GROUP_SECONDS if subject.options.alone else _LEAST_GROUP_SECONDS
    groups = (
        run_concurrently(
            callers,
            times=-(-_CALLS_EACH // in_a_row),
            least_s=least_s,
            most_s=_GROUP_SECONDS,
            # The first BLAS call of a new thread uses the number of threads set in that thread.
            prepare=functools.partial(torch.set_num_threads, 1),
        )
        for _ in range(_GROUPS)
    )
    found = next(filter(None, groups), None)
    if found is None:
        recorder.ok()
    else:
        code = f"# from {_CALLERS} threads at once, each with other values:\n{subject.code(case)}"
        recorder.fail(Failure(Kind.RACE, case.name, code, found, "the result of the same call alone"))
