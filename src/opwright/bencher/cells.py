"""Times the cells of one operator at one size."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Protocol

import torch

from opwright.bencher.contents import Contents
from opwright.bencher.floor import bytes_of, floor_of
from opwright.bencher.implementations import Verified
from opwright.bencher.result import DIRECTIONS, ROWS, Cell, Row
from opwright.bencher.rows import Turns
from opwright.bencher.spot_checks import SpotChecks
from opwright.bencher.timer import measure
from opwright.bencher.too_fast import too_fast

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from opwright.bencher.draws import Draws
    from opwright.bencher.gauge import Gauge
    from opwright.bencher.result import Direction, RowName
    from opwright.bencher.stopping import StoppingRule
    from opwright.bencher.subject import Implementation, Subject


class Watcher(Protocol):
    """Receives the progress of a bench."""

    def start(self, sizes: int | None) -> None:
        """The benchmark starts; `sizes` is the total of all operators, devices and thread counts, None if unknown."""

    def begin(self, cell: str) -> None:
        """A cell starts."""

    def round(self) -> None:
        """A round of the cell finished. This call is not timed."""

    def end(self, cell: Cell) -> None:
        """A cell finished."""

    def end_size(self) -> None:
        """All cells of a size finished."""


def cells_at(
    subject: Subject,
    draws: Draws,
    implementations: dict[RowName, Implementation],
    requested: Collection[Direction],
    rule: StoppingRule,
    watcher: Watcher,
    gauge: Gauge | None = None,
) -> Iterator[Cell]:
    """Verify the implementations of an operator, and time them in each of its directions.

    Args:
        subject: the operator at one size.
        draws: draws its arguments.
        implementations: what to time, by the names of the rows.
        requested: the directions to time.
        rule: when to stop.
        watcher: receives the progress.
        gauge: measures the speeds that times on a GPU are compared with; None for the CPU.
    """
    verified = Verified(subject, implementations)
    directions = [direction for direction in _directions(subject) if direction in requested]
    for direction in directions:
        for name in implementations:
            verified.refusal(name, direction)
    # From here on, the contents of the subject change.
    timer = _CellTimer(verified, draws, rule, watcher.round, gauge)
    for direction in directions:
        watcher.begin(f"{subject.op.name}, {subject.label}: {direction}")
        cell = timer.cell(direction)
        watcher.end(cell)
        yield cell


def _directions(subject: Subject) -> tuple[Direction, ...]:
    """The directions that the operator has at this size."""
    if subject.expected.refusal or not subject.gradients.exist:
        return ("forward",)
    return DIRECTIONS


class _CellTimer:
    """Times the cells of one operator at one size."""

    def __init__(
        self,
        verified: Verified,
        draws: Draws,
        rule: StoppingRule,
        on_round: Callable[[], None],
        gauge: Gauge | None,
    ) -> None:
        self._verified = verified
        self._subject = verified.subject
        self._draws = draws
        self._rule = rule
        self._on_round = on_round
        self._gauge = gauge

    @functools.cached_property
    def _contents(self) -> Contents:
        return Contents(self._subject, self._draws)

    def cell(self, direction: Direction) -> Cell:
        """Time the implementations in one direction."""
        subject, verified = self._subject, self._verified
        refusals = {name: verified.refusal(name, direction) for name in verified.implementations}
        rows = {name: refusal for name, refusal in refusals.items() if refusal}
        names = [name for name in refusals if name not in rows]
        floor, on_gpu = "", None
        if names:
            before = self._gauge.state() if self._gauge else None
            with torch.set_grad_enabled(direction != "forward"):
                floor, timed = self._timed(direction, names)
            rows |= timed
            on_gpu = self._gauge.record(subject, direction, before) if self._gauge else None
        return Cell(
            op=subject.op.qualified_name,
            device=subject.device,
            threads=torch.get_num_threads(),
            size=subject.label,
            direction=direction,
            bytes=bytes_of(subject, direction) if names else 0,
            floor=floor,
            rows=tuple(rows[name] for name in ROWS if name in rows),
            contents=self._contents.fixed if names else "",
            gpu=on_gpu,
        )

    def _timed(self, direction: Direction, names: list[RowName]) -> tuple[str, dict[RowName, Row]]:
        """The description of the floor, and the timed rows, including the floor's."""
        contents = self._contents
        calls: dict[RowName, Turns] = {}
        for name in names:
            implementation = self._verified.implementations[name]
            calls[name] = Turns([one.row(implementation, direction) for one in contents.subjects], contents.renew)
        floor = floor_of(contents, direction)
        calls["floor"] = floor.row
        checks = SpotChecks(contents, direction, names)
        timings = measure(
            calls, rule=self._rule, device=self._subject.device, on_round=self._on_round, inspector=checks, cold=True
        )
        rows = {name: Row(name, "timed", timing) for name, timing in timings.items()}
        rows |= {name: Row(name, "raises", reason=raised) for name, raised in checks.raised.items()}
        for name, fault in checks.faults().items():
            rows[name] = Row(name, "wrong", reason=f"wrong when timed: {fault}")
        for name in names:
            if (timing := rows[name].timing) and "floor" in timings:
                reason = too_fast(self._subject, direction, floor, timing, timings["floor"])
                if reason:
                    rows[name] = Row(name, "too fast", reason=reason)
        return floor.what, rows
