"""Runs single checks of an operator's behavior."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pytest

from opwright.checker.recorder import Recorder

if TYPE_CHECKING:
    from opwright.checker.subject import Subject
    from opwright.checker.verdict import Failure

NOT_A_NUMBER = """
@library.op
def f(x: Tensor) -> Tensor:
    return x * float("nan")
"""


class RunChecks(Protocol):
    """Runs checks of an operator, and returns the failures that they record."""

    def __call__(self, subject: Subject, *checks: Any) -> tuple[Failure, ...]: ...


@pytest.fixture(scope="session")
def failures() -> RunChecks:
    def failures(subject: Subject, *checks: Any) -> tuple[Failure, ...]:
        steps: list[dict[str, Any]] = []
        recorder = Recorder("f", "eager", "cpu", steps.append)
        for check in checks:
            check(subject, recorder)
        assert steps
        return recorder.cell().failures

    return failures
