"""Finds the largest call that an operator must support."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opwright.checker.cases.case import Family
from opwright.spec import derive

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opwright.checker.cases.case import Case
    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject


def widest_variation(subject: Subject, recorder: Recorder) -> Case | None:
    """The variation in size with the most elements, which keeps several threads busy; None if there is none."""
    return widest([case for case in subject.varied if case.family is Family.SIZE], subject, recorder)


def widest(cases: Sequence[Case], subject: Subject, recorder: Recorder) -> Case | None:
    """The case with the most elements that the reference accepts and that crashed no process."""
    living = [case for case in cases if not recorder.died_of(case.name, case.group)]
    working = [case for case in living if not subject.expected(case).refusal]
    return max(working, key=lambda case: sum(tensor.numel() for tensor in derive.tensors(case.arguments)), default=None)
