"""Checks that a repeated call returns the same results, and does not change earlier ones."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from torch.utils import _pytree as pytree

from opwright.checker.behavior.poison import poisoned
from opwright.checker.behavior.same_call import changed_answer, copies, difference, same_numbers, shifted
from opwright.checker.kinds import Kind
from opwright.checker.verdict import Failure
from opwright.spec.difference import first_line

if TYPE_CHECKING:
    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject

_SAME = "the same as the first time"


def check_repetition(subject: Subject, recorder: Recorder) -> None:
    """Check that a repeated call returns the same results, and that a later call does not change earlier ones."""
    for case in subject.samples:
        code = subject.code(case)
        if not recorder.begin(f"{case.name}: called again", code):
            continue
        subject.expected(case)  # now: a reference that changes would later return the operator's results
        with poisoned():
            try:
                first = subject.call(case.fresh())
            except Exception:
                continue
            kept = copies(first)
            other = shifted(case.fresh(), 1)
            with contextlib.suppress(Exception):
                subject.call(other)
            if not all(map(same_numbers, pytree.tree_leaves(first), pytree.tree_leaves(kept))):
                overwritten = difference(first, kept) or "other numbers within rounding"
                got = f"after another call, the first one's result reads: {overwritten}"
                recorder.fail(
                    Failure(Kind.STATE, case.name, f"{code}  # and once more, with other numbers", got, _SAME)
                )
            try:
                again = subject.call(case.fresh())
            except Exception as error:
                recorder.fail(Failure(Kind.STATE, case.name, f"{code}  # twice", first_line(error), _SAME))
                continue
            if (changed := changed_answer(subject, case, again, kept)) is not None:
                recorder.fail(Failure(Kind.STATE, case.name, f"{code}  # twice", f"the second time: {changed}", _SAME))
