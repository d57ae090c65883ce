"""Performs the steps of a cell: announces each one, runs it, and records its outcome."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any, TypeVar

from opwright.checker.kinds import Kind
from opwright.checker.verdict import Failure
from opwright.spec.difference import first_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from opwright.checker.cases.case import Case
    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject

T = TypeVar("T")

_MOST_LINES = 12
# PyTorch's messages about its own limits, and workarounds.
_ADVICE = {
    "serialized argument type as_": "AOTInductor serializes the default of a torch.dtype, torch.layout or "
    "torch.memory_format argument as a number, and then rejects it: remove the default, or make it None",
}
_LONGEST_LINE = 400
# PyTorch's message for a fake kernel that reads a number from a tensor.
_DATA_DEPENDENT = re.compile(r"DataDependent|data-dependent")
_SCRIPTED = "The following operation failed in the TorchScript interpreter."
_RAISED = re.compile(r"^(?:\w+Error: )*(\w+Error: .*)$", flags=re.MULTILINE)


class Steps:
    """Performs the steps of one cell.

    Args:
        subject: the operator.
        recorder: records their outcomes.
    """

    def __init__(self, subject: Subject, recorder: Recorder) -> None:
        self.subject = subject
        self.recorder = recorder

    def do(self, step: str, repro: str, action: Callable[[], T], case: Case | None = None) -> T | None:
        """Perform `action`; an exception is a fault.

        Args:
            step: a description of the step, unique in the cell.
            repro: lines of Python that reproduce it.
            action: the function to call.
            case: the call that `action` makes; if it also raises in eager mode, the runtime is not at fault.

        Returns:
            The result of `action`; None if it raised, or if it ended an earlier process.
        """
        if not self.recorder.begin(step, repro):
            return None
        try:
            return action()
        except Exception as error:
            self.fail(step, repro, error, self._kind(error, case))
            return None

    def judge(self, step: str, repro: str, case: Case, action: Callable[[], list[Any]]) -> bool:
        """Perform `action` as `do` does, judge the outcome of `case`, and return whether it is correct."""
        outcome = self.do(step, repro, action, case)
        return outcome is not None and self.judged(step, repro, case, outcome)

    def judged(self, step: str, repro: str, case: Case, outcome: list[Any]) -> bool:
        """Record and return whether `outcome` is correct for `case`."""
        failure = self.subject.judge(case, outcome)
        if failure is None:
            self.recorder.ok()
            return True
        self.recorder.fail(dataclasses.replace(failure, case=step, repro=repro))
        return False

    def fail(self, step: str, repro: str, error: BaseException, kind: Kind = Kind.RUNTIME) -> None:
        """Record that a step raised."""
        self.recorder.fail(
            Failure(
                kind,
                step,
                repro,
                got=_trimmed(_headline(error)),
                expected="no error: the reference raises none",
                detail=detail(str(error)),
            )
        )

    def _kind(self, error: Exception, case: Case | None) -> Kind:
        if _DATA_DEPENDENT.search(f"{type(error).__name__}: {error}"):
            return Kind.FAKE_RAISES
        if case is not None:
            try:
                self.subject.call(case.fresh())
            except Exception:
                return Kind.RAISES
        return Kind.RUNTIME


def detail(text: str) -> str:
    """The first lines of a message, without those that do not help an operator's author, and any workaround."""
    lines = [line for line in text.strip().splitlines() if line.strip() and "TORCHDYNAMO_VERBOSE" not in line]
    advice = [workaround for sign, workaround in _ADVICE.items() if sign in text]
    return "\n".join([*map(_trimmed, lines[:_MOST_LINES]), *advice])


def _headline(error: BaseException) -> str:
    """An error in one line: for TorchScript, the last line that starts with the name of an error."""
    raised = _RAISED.findall(str(error)) if _SCRIPTED in str(error) else []
    return raised[-1] if raised else first_line(error)


def _trimmed(line: str) -> str:
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}..."
