"""Finds calls in which an option selects a different branch of the code than in the samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opwright.checker.cases.case import Family

if TYPE_CHECKING:
    from opwright.checker.cases.case import Case
    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject

# Calling each case many times takes a second.
_MOST = 4


def branches(subject: Subject, recorder: Recorder) -> list[Case]:
    """The variations with another flag, string or None that the reference accepts and that crashed no process.

    There is one per value, and none in a quick check.
    """
    if subject.options.quick:
        return []
    found: dict[tuple[str, str], Case] = {}
    for case in subject.varied:
        value = case.arguments.get(case.argument)
        if case.family is not Family.OPTION or not (value is None or isinstance(value, (bool, str))):
            continue
        if recorder.died_of(case.name, case.group) or subject.expected(case).refusal:
            continue
        found.setdefault((case.argument, repr(value)), case)
        if len(found) == _MOST:
            break
    return list(found.values())
