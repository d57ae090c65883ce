"""Checks that results own their memory: no argument or other result shares it, and it has not been freed."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from opwright.checker.behavior.memory import is_freed, shares_memory
from opwright.checker.kinds import Kind
from opwright.checker.verdict import Failure
from opwright.spec import derive

if TYPE_CHECKING:
    from torch import Tensor

    from opwright.checker.cases.case import Case
    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject


def check_ownership(subject: Subject, recorder: Recorder) -> None:
    """Check the memory of the results of the samples."""
    for case in subject.samples:
        _check(subject, recorder, case)


def _check(subject: Subject, recorder: Recorder, case: Case) -> None:
    code = subject.code(case)
    if not recorder.begin(f"{case.name}: the memory of the result", code, Kind.CRASH):
        return
    arguments = case.fresh()
    try:
        results = subject.call(arguments)
    except Exception:
        return
    if (shared := alias_fault(subject, case, arguments, results)) is not None:
        recorder.fail(shared)
    elif is_freed(_returned(subject, results)):
        got = "a result in memory that was returned to the allocator"
        recorder.fail(Failure(Kind.FREED, case.name, code, got, "a result that owns its memory"))


def alias_fault(subject: Subject, case: Case, arguments: dict[str, Any], results: list[Any]) -> Failure | None:
    """Return the fault of a call whose results share memory with an argument or with each other."""
    returned = _returned(subject, results)
    if shares_memory(returned, arguments):
        got = "a result that shares memory with an argument"
    elif any(shares_memory([one], [other]) for one, other in itertools.combinations(returned, 2)):
        got = "two results that share memory"
    else:
        return None
    declared = f"new memory: the schema {subject.op.schema} declares no alias"
    return Failure(Kind.ALIAS, case.name, subject.code(case), got, declared)


def _returned(subject: Subject, results: list[Any]) -> list[Tensor]:
    """The tensors that a call returned, except the arguments that it mutates."""
    return derive.tensors(results[: len(results) - len(subject.op.mutates)])
