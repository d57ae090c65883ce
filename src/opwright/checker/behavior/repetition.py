"""Checks that a repeated call returns the same results and does not change earlier ones."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

from torch.utils import _pytree as pytree

from opwright.checker.behavior.branches import branches
from opwright.checker.behavior.poison import poisoned
from opwright.checker.behavior.same_call import changed_answer, copies, difference, same_numbers, shifted_case
from opwright.checker.kinds import Kind
from opwright.checker.verdict import Failure
from opwright.spec import derive
from opwright.spec.difference import first_line

if TYPE_CHECKING:
    from opwright.checker.cases.case import Case
    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject

_SAME = "the same as the first time"
# The number and size of results that are kept during further calls.
_MOST_CALLS = 64
_MOST_BYTES = 2**26
_SECONDS = 0.5


def check_repetition(subject: Subject, recorder: Recorder) -> None:
    """Check that a repeated call returns the same results, and that a later call does not change earlier ones."""
    if recorder.has(Kind.LATE):
        return  # values that are not final yet differ from call to call
    for case in (*subject.samples, *branches(subject, recorder)):
        code = subject.code(case)
        if not recorder.begin(f"{case.name}: called again", code, group=case.group):
            continue
        subject.expected(case)  # computed now: a reference with state could later return the operator's results
        with poisoned():
            try:
                first = subject.call(case.fresh())
            except Exception:
                continue
            kept = copies(first)
            if (overwritten := _overwritten(subject, case, first, kept)) is not None:
                more = f"{code}  # and again, with other values, while the first result is kept"
                recorder.fail(Failure(Kind.STATE, case.name, more, overwritten, _SAME))
            try:
                again = subject.call(case.fresh())
            except Exception as error:
                recorder.fail(Failure(Kind.STATE, case.name, f"{code}  # twice", first_line(error), _SAME))
                continue
            if (changed := changed_answer(subject, case, again, kept)) is not None:
                recorder.fail(Failure(Kind.STATE, case.name, f"{code}  # twice", f"the second time: {changed}", _SAME))


def _overwritten(subject: Subject, case: Case, first: list[Any], kept: list[Any]) -> str | None:
    """Return how later calls with other values change the results of the first one; None if they do not.

    All results are kept, as a caller might: an operator may reuse its buffers only after several calls.
    """
    nbytes = sum(tensor.nbytes for tensor in derive.tensors([case.arguments, kept]))
    later: list[Any] = []
    started = time.process_time()
    for number in range(1, 1 + max(1, min(_MOST_CALLS, _MOST_BYTES // max(nbytes, 1)))):
        arguments = shifted_case(subject, case, number).arguments
        with contextlib.suppress(Exception):
            later.append((arguments, subject.call(arguments)))
        if not all(map(same_numbers, pytree.tree_leaves(first), pytree.tree_leaves(kept))):
            calls = f"{number} other calls" if number > 1 else "another call"
            changed = difference(first, kept) or "other values within rounding"
            return f"after {calls}, the first result changed to {changed}"
        if time.process_time() - started > _SECONDS:
            break
    return None
