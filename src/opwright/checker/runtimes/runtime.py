"""The protocol of a runtime in a check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject


class Runtime(Protocol):
    """One way in which PyTorch runs an operator, implemented as a module with these two functions and this name.

    Attributes:
        NAME: the runtime's name in reports.
    """

    NAME: str

    def why_not(self, subject: Subject) -> str:
        """Why the runtime does not apply to the operator; empty if it does. Such a cell never counts as passed."""
        ...

    def run(self, subject: Subject, recorder: Recorder) -> None:
        """Run the operator's cases in this runtime, and record each outcome."""
        ...
