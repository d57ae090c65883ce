"""The interface that receives the progress of a check of mutants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from opwright.checker.mutants.mutant import Mutant
    from opwright.checker.mutants.score import MutantResult


class MutantWatcher(Protocol):
    """Receives the progress of a check of mutants."""

    def start(self, namespace: str, count: int | None) -> None:
        """Handle the start of a check of the unchanged library, followed by `count` mutants; None for all."""

    def begin(self, mutant: Mutant) -> None:
        """Handle the start of the build and check of a mutant."""

    def end(self, result: MutantResult) -> None:
        """Handle the result of a mutant."""


class NullMutantWatcher:
    """A watcher that does nothing."""

    def start(self, namespace: str, count: int | None) -> None:
        """Do nothing."""

    def begin(self, mutant: Mutant) -> None:
        """Do nothing."""

    def end(self, result: MutantResult) -> None:
        """Do nothing."""
