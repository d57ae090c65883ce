"""The interface that receives the progress of a check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opwright.checker.verdict import Cell


class Watcher(Protocol):
    """Receives the progress of the cells."""

    def start(self, cells: Sequence[tuple[str, str, str]]) -> None:
        """Receive the cells of the check: the operator, the runtime and the device of each."""

    def begin(self, op: str, runtime: str, device: str) -> None:
        """Handle the start of a cell."""

    def case(self, text: str) -> None:
        """Handle the start of a step of the cell."""

    def end(self, cell: Cell) -> None:
        """Handle the end of a cell."""


class NullWatcher:
    """A watcher that does nothing."""

    def start(self, cells: Sequence[tuple[str, str, str]]) -> None:
        """Do nothing."""

    def begin(self, op: str, runtime: str, device: str) -> None:
        """Do nothing."""

    def case(self, text: str) -> None:
        """Do nothing."""

    def end(self, cell: Cell) -> None:
        """Do nothing."""
