"""The interface that receives the progress of a check of mutants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from opwright.checker.mutants.mutant import Mutant
    from opwright.checker.mutants.score import MutantResult


class MutantWatcher(Protocol):
    """Receives the progress of a check of mutants."""

    def start(self, namespace: str, count: int | None) -> None:
        """The library without a change is checked, and then `count` mutants; None for all."""

    def begin(self, mutant: Mutant) -> None:
        """A mutant is built and checked."""

    def end(self, result: MutantResult) -> None:
        """A mutant is done."""


class NullMutantWatcher:
    """A watcher that does nothing."""

    def start(self, namespace: str, count: int | None) -> None:
        """Do nothing."""

    def begin(self, mutant: Mutant) -> None:
        """Do nothing."""

    def end(self, result: MutantResult) -> None:
        """Do nothing."""
