from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from opwright.bencher.machine import Gpu, MachineRecord
from opwright.bencher.result import DIRECTIONS, Cell, Report, Row
from opwright.bencher.timer import Timing
from opwright.toolchain.machine import Machine

if TYPE_CHECKING:
    from opwright.bencher.result import Direction

MACHINE = MachineRecord(
    machine=Machine("A Processor", 8, ("avx2", "avx512f"), 2**34, "3.11.7"),
    gpus=(Gpu("A GPU", "9.0", 132, 2**37),),
    driver="580.65",
    pytorch="2.13.0",
    cuda="13.0",
    kernels="AVX512",
    libraries=("MKL 2024.2",),
    environment={},
    date="2026-11-21",
)


def timing(microseconds: float) -> Timing:
    times = tuple(1e-6 * microseconds * factor for factor in (0.8, 1.0, 1.0, 1.2))
    return Timing(times, 5, "4 rounds", tuple(1.9 * time for time in times))


def cell(size: str, direction: Direction, scale: float, *, op: str = "mine::scale") -> Cell:
    rows = (
        Row("reference", "timed", timing(10 * scale)),
        Row("compiled", "timed", timing(8 * scale)),
        Row("native", "timed", timing(2.5 * scale)),
        Row("floor", "timed", timing(scale)),
    )
    return Cell(op, "cpu", 2, size, direction, int(4096 * scale), "a copy that moves 4.00 KiB", rows)


@pytest.fixture(scope="session")
def report() -> Report:
    """One operator at two sizes in all four directions, and another one that is wrong, and cannot be compiled."""
    right = [
        cell(size, direction, scale)
        for size, scale in (("16 x 32", 1), ("1024 x 1024", 900))
        for direction in DIRECTIONS
    ]
    broken = Cell(
        "mine::bent",
        "cpu",
        2,
        "<b>8</b> --> [red]8[/]",
        "forward",
        64,
        "nothing <much>",
        (
            Row("reference", "timed", timing(3)),
            Row("compiled", "skipped", reason="it cannot be compiled: Unsupported: a jump"),
            Row("native", "wrong", reason="float32 (8,), at [0]: 3.0; 8 of 8 elements differ, expected at [0]: 2.0"),
            Row("floor", "timed", timing(1)),
        ),
    )
    return Report(
        namespace="mine",
        path="ops/mine",
        machine=MACHINE,
        dtype="float32",
        seed=7,
        rule="4 rounds",
        cells=(*right, broken),
        notes=("`bent` has no sweep",),
        seconds=34.2,
    )
