"""The results of a bench: rows, cells of rows, and the report of all cells."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from opwright.bencher.on_gpu import Rates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opwright.bencher.machine import MachineRecord
    from opwright.bencher.on_gpu import OnGpu
    from opwright.bencher.timer import Spread, Timing

Direction = Literal["forward", "recorded", "backward", "both"]
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
RowName = Literal["reference", "compiled", "graphed", "native", "floor"]
ROWS: tuple[RowName, ...] = get_args(RowName)
Status = Literal["timed", "wrong", "too fast", "raises", "skipped"]


@dataclass(frozen=True)
class Row:
    """One implementation of an operator, or its floor.

    Attributes:
        name: the kind: the reference in eager mode, compiled, or compiled with CUDA graphs; the operator; the floor.
        status: the outcome; `wrong`, `too fast` and `raises` are faults.
        timing: its times; None if it was not timed.
        reason: why it was not timed: how its results differ, what it raised, or why it was skipped.
    """

    name: RowName
    status: Status
    timing: Timing | None = None
    reason: str = ""

    @property
    def is_fault(self) -> bool:
        """Whether it should have a time but has none."""
        return self.status in {"wrong", "too fast", "raises"}


@dataclass(frozen=True)
class Cell:
    """One operator at one size, in one direction, on one device, with a fixed number of threads.

    Attributes:
        op: the operator, as `namespace::name`.
        device: `cpu` or `cuda`.
        threads: the number of CPU threads that PyTorch's operators may use.
        size: the size's label.
        direction: forward, forward while autograd records it, backward, or both.
        bytes: the number of bytes to read and write: arguments, results, gradients.
        floor: the description of the floor.
        rows: one per implementation, and the floor.
        contents: why all calls had the same contents; empty if each timed call had different ones.
        gpu: the speeds that the times are compared with on a GPU, and its state; None on the CPU, or without times.
    """

    op: str
    device: str
    threads: int
    size: str
    direction: Direction
    bytes: int
    floor: str
    rows: tuple[Row, ...]
    contents: str = ""
    gpu: OnGpu | None = None

    @property
    def ended(self) -> str:
        """Why the rounds stopped; empty if nothing was timed."""
        return next((row.timing.ended for row in self.rows if row.timing), "")

    def timing(self, name: RowName) -> Timing | None:
        """The times of a row; None if it was not timed."""
        return next((row.timing for row in self.rows if row.name == name), None)

    def ratio(self, name: RowName, to: RowName = "reference") -> Spread | None:
        """The ratio of the times of two rows, round by round; None if one of them was not timed."""
        mine, theirs = self.timing(name), self.timing(to)
        return mine.ratio(theirs) if mine and theirs else None

    def rates(self, name: RowName) -> Rates | None:
        """The rates of a row on a GPU; None on the CPU, and if it was not timed."""
        timing = self.timing(name)
        if self.gpu is None or timing is None:
            return None
        return Rates.of(self.gpu, self.bytes, timing.median, computes=name != "floor")

    def to_json(self) -> dict[str, Any]:
        """The cell as JSON: times in seconds, ratios to the reference."""
        plain = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        on_gpu = {} if self.gpu is None else {**dataclasses.asdict(self.gpu), "slowed_down": self.gpu.slowed_down}
        rows = [self._row_to_json(row) for row in self.rows]
        return {**plain, "gpu": on_gpu or None, "ended": self.ended, "rows": rows}

    def _row_to_json(self, row: Row) -> dict[str, Any]:
        plain: dict[str, Any] = {"name": row.name, "status": row.status, "reason": row.reason}
        if row.timing is None:
            return plain
        ratio, rates, timing = self.ratio(row.name), self.rates(row.name), row.timing
        plain |= {
            "seconds": _spread_to_json(timing.spread, timing.times),
            "processor_seconds": _spread_to_json(timing.processor, timing.processor_times),
            "calls": timing.calls,
            "rounds": len(timing.times),
            "ratio": None if ratio is None else dataclasses.asdict(ratio),
        }
        if rates is None:
            return plain
        return {
            **plain,
            "cold_seconds": _spread_to_json(timing.cold, timing.cold_times),
            "host_seconds": _spread_to_json(timing.host, timing.host_times),
            "other_streams": timing.is_late,
            "rates": dataclasses.asdict(rates),
        }


def _spread_to_json(spread: Spread | None, times: Sequence[float]) -> dict[str, Any] | None:
    return None if spread is None else {**dataclasses.asdict(spread), "times": times}


@dataclass(frozen=True)
class Report:
    """The outcome of a bench.

    Attributes:
        namespace: the library's namespace.
        path: the folder of its op.py.
        machine: the machine, and the PyTorch on it.
        dtype: the dtype of floating-point tensors for which the sweep does not specify one.
        seed: the seed of the random inputs.
        rule: the stopping rule, in words.
        cells: by operator, device, threads, size and direction.
        notes: facts that the times do not show.
        seconds: the duration of the benchmark, including the build.
    """

    namespace: str
    path: str
    machine: MachineRecord
    dtype: str
    seed: int
    rule: str
    cells: tuple[Cell, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether something was timed and no row is a fault."""
        return self.timed and not any(row.is_fault for cell in self.cells for row in cell.rows)

    @property
    def timed(self) -> bool:
        """Whether any row was timed."""
        return any(row.status == "timed" for cell in self.cells for row in cell.rows)

    def to_json(self) -> dict[str, Any]:
        """The report as `--json` writes it."""
        return {
            "passed": self.passed,
            **dataclasses.asdict(dataclasses.replace(self, cells=())),
            "cells": [cell.to_json() for cell in self.cells],
        }
