"""The steps of a cell: each is announced, done, and what came of it is written down."""

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
# What PyTorch says of its own limits, and the way around them.
_ADVICE = {
    "serialized argument type as_": "AOTInductor writes the default of a torch.dtype, torch.layout or "
    "torch.memory_format argument as a number, and then refuses it: give the argument no default, or None for one",
}
_LONGEST_LINE = 400
# How PyTorch says that a fake kernel asked for a number in a tensor.
_DATA_DEPENDENT = re.compile(r"DataDependent|data-dependent")
_SCRIPTED = "The following operation failed in the TorchScript interpreter."
_RAISED = re.compile(r"^(?:\w+Error: )*(\w+Error: .*)$", flags=re.MULTILINE)


class Steps:
    """Does the steps of one cell.

    Args:
        subject: the operator.
        recorder: what the cell writes down.
    """

    def __init__(self, subject: Subject, recorder: Recorder) -> None:
        self.subject = subject
        self.recorder = recorder

    def do(self, step: str, repro: str, action: Callable[[], T], case: Case | None = None) -> T | None:
        """Do `action`; an exception is a fault.

        Args:
            step: the step in words, one of its kind in the cell.
            repro: lines of Python that reproduce it.
            action: what is done.
            case: the call that it makes; what raises in eager mode too is not a fault of the runtime.

        Returns:
            What `action` gave; None where it raised, or where a process died of it before.
        """
        if not self.recorder.begin(step, repro):
            return None
        try:
            return action()
        except Exception as error:
            self.fail(step, repro, error, self._kind(error, case))
            return None

    def judge(self, step: str, repro: str, case: Case, action: Callable[[], list[Any]]) -> bool:
        """Do `action` as `do` does, which gives an outcome of `case`; whether it is right."""
        outcome = self.do(step, repro, action, case)
        return outcome is not None and self.judged(step, repro, case, outcome)

    def judged(self, step: str, repro: str, case: Case, outcome: list[Any]) -> bool:
        """Write down whether `outcome` is right for `case`, and say it."""
        failure = self.subject.judge(case, outcome)
        if failure is None:
            self.recorder.ok()
            return True
        self.recorder.fail(dataclasses.replace(failure, case=step, repro=repro))
        return False

    def fail(self, step: str, repro: str, error: BaseException, kind: Kind = Kind.RUNTIME) -> None:
        """Write down that a step raised."""
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
    """The first lines of what was said, without those that are of no use to an operator's author; and what helps."""
    told = [line for line in text.strip().splitlines() if line.strip() and "TORCHDYNAMO_VERBOSE" not in line]
    advice = [said for sign, said in _ADVICE.items() if sign in text]
    return "\n".join([*map(_trimmed, told[:_MOST_LINES]), *advice])


def _headline(error: BaseException) -> str:
    """What went wrong in one line: in TorchScript the last one of those that begin with an error's name."""
    told = _RAISED.findall(str(error)) if _SCRIPTED in str(error) else []
    return told[-1] if told else first_line(error)


def _trimmed(line: str) -> str:
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}..."
