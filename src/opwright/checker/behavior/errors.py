"""Checks that calls raise the errors that the author claims."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opwright.checker.kinds import Kind
from opwright.checker.verdict import Failure
from opwright.spec.difference import described, first_line

if TYPE_CHECKING:
    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject


def check_errors(subject: Subject, recorder: Recorder) -> None:
    """Make each call that `@op.errors` yields, and compare the message of its error."""
    for message, case in subject.errors:
        code = subject.code(case)
        if not recorder.begin(case.name, code, Kind.CRASH, case.group):
            continue
        wanted = f"an error with {message!r} in its message"
        try:
            results = subject.call(case.fresh())
        except Exception as error:
            if message in str(error):
                recorder.ok()
            else:
                recorder.fail(Failure(Kind.MESSAGE, case.name, code, first_line(error), wanted, detail=str(error)))
        else:
            got = ", ".join(map(described, results))
            recorder.fail(Failure(Kind.BAD_INPUT, case.name, code, got, wanted))
