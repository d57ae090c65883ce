"""Times the cells of one operator at one size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import torch

from opwright.bencher.floor import bytes_of, floor_of
from opwright.bencher.implementations import Verified
from opwright.bencher.result import DIRECTIONS, Cell, Row
from opwright.bencher.timer import measure
from opwright.spec.difference import first_line

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from opwright.bencher.result import Direction, RowName
    from opwright.bencher.stopping import StoppingRule
    from opwright.bencher.subject import Implementation, Subject
    from opwright.bencher.timer import Row as TimedRow


class Watcher(Protocol):
    """Receives the progress of a bench."""

    def start(self, sizes: int | None) -> None:
        """The bench starts; `sizes` counts over all operators, devices and numbers of threads, None if unknown."""

    def begin(self, cell: str) -> None:
        """A cell starts."""

    def round(self) -> None:
        """A round of the cell ended. This call is not timed."""

    def end(self, cell: Cell) -> None:
        """A cell ended."""

    def end_size(self) -> None:
        """All cells of a size ended."""


def cells_at(
    subject: Subject,
    implementations: dict[RowName, Implementation],
    requested: Collection[Direction],
    rule: StoppingRule,
    watcher: Watcher,
) -> Iterator[Cell]:
    """Verify the implementations of an operator, and time them in each direction that the operator has."""
    verified = Verified(subject, implementations)
    for direction in _directions(subject):
        if direction in requested:
            watcher.begin(f"{subject.op.name}, {subject.label}: {direction}")
            cell = _cell(subject, verified, direction, rule, watcher.round)
            watcher.end(cell)
            yield cell


def _directions(subject: Subject) -> tuple[Direction, ...]:
    """The directions that the operator has at this size."""
    if subject.expected.refusal or not subject.gradients.exist:
        return ("forward",)
    return DIRECTIONS


def _cell(
    subject: Subject, verified: Verified, direction: Direction, rule: StoppingRule, on_round: Callable[[], None]
) -> Cell:
    rows: dict[RowName, Row] = {}
    timed: dict[RowName, TimedRow] = {}
    for name, implementation in verified.implementations.items():
        if refusal := verified.refusal(name, direction):
            rows[name] = refusal
        else:
            timed[name] = subject.row(implementation, direction)
    floor = ""
    with torch.set_grad_enabled(direction != "forward"):
        if timed:
            floor, call = floor_of(subject, direction)
            try:
                call()
                timed["floor"] = call
            except Exception as error:
                rows["floor"] = Row("floor", "raises", reason=first_line(error))
        timings = measure(timed, rule=rule, device=subject.device, on_round=on_round)
    rows |= {name: Row(name, "timed", timings[name]) for name in timed}
    return Cell(
        op=subject.op.qualified_name,
        device=subject.device,
        threads=torch.get_num_threads(),
        size=subject.label,
        direction=direction,
        bytes=bytes_of(subject, direction) if timed else 0,
        floor=floor,
        rows=tuple(rows[name] for name in (*verified.implementations, "floor") if name in rows),
    )
