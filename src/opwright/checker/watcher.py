"""The interface that receives the progress of a check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opwright.checker.verdict import Cell


class Watcher(Protocol):
    """Receives the progress of the cells."""

    def start(self, cells: Sequence[tuple[str, str, str]]) -> None:
        """The cells are known: the operator, the runtime and the device of each."""

    def begin(self, op: str, runtime: str, device: str) -> None:
        """A cell begins."""

    def case(self, text: str) -> None:
        """A step of the cell begins."""

    def end(self, cell: Cell) -> None:
        """A cell is done."""


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
