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
    from opwright.bencher.subject import Subject, Way
    from opwright.bencher.timer import Row as TimedRow


class Watcher(Protocol):
    """Is told how far a bench is."""

    def start(self, sizes: int | None) -> None:
        """So many sizes there are, over all operators, devices and numbers of threads; None where nobody knows."""

    def begin(self, cell: str) -> None:
        """A cell begins."""

    def round(self) -> None:
        """A round of the cell is over. The clock does not run meanwhile."""

    def end(self, cell: Cell) -> None:
        """A cell is done."""

    def end_size(self) -> None:
        """All cells of a size are done."""


def cells_at(
    subject: Subject, ways: dict[RowName, Way], wanted: Collection[Direction], rule: StoppingRule, watcher: Watcher
) -> Iterator[Cell]:
    """Verify the ways to compute an operator, and time them in each direction that it has."""
    verified = Verified(subject, ways)
    for direction in _directions(subject):
        if direction in wanted:
            watcher.begin(f"{subject.op.name}, {subject.label}: {direction}")
            cell = _cell(subject, verified, direction, rule, watcher.round)
            watcher.end(cell)
            yield cell


def _directions(subject: Subject) -> tuple[Direction, ...]:
    """Those that the operator has at this size."""
    if subject.expected.refusal or not subject.gradients.are_there:
        return ("forward",)
    return DIRECTIONS


def _cell(
    subject: Subject, verified: Verified, direction: Direction, rule: StoppingRule, on_round: Callable[[], None]
) -> Cell:
    rows: dict[RowName, Row] = {}
    timed: dict[RowName, TimedRow] = {}
    for name, way in verified.ways.items():
        if refusal := verified.refusal(name, direction):
            rows[name] = refusal
        else:
            timed[name] = subject.row(way, direction)
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
        rows=tuple(rows[name] for name in (*verified.ways, "floor") if name in rows),
    )
