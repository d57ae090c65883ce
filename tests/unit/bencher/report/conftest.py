from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from opwright.bencher.gpu_state import GpuState
from opwright.bencher.machine import Gpu, MachineRecord
from opwright.bencher.on_gpu import OnGpu
from opwright.bencher.result import DIRECTIONS, Cell, Report, Row
from opwright.bencher.timer import Timing
from opwright.toolchain.machine import Machine

if TYPE_CHECKING:
    from opwright.bencher.result import Direction, RowName

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
    """One operator at two sizes in all four directions, and another one that is wrong and cannot be compiled."""
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


@pytest.fixture(scope="session")
def gpu_report(report: Report) -> Report:
    """An operator with matrix products on a GPU, which was also compiled with CUDA graphs."""
    state = GpuState(1755, 1980, 2619, "P0", ("software power cap",))

    def on_gpu(microseconds: float) -> Timing:
        whole = timing(microseconds)
        halves, doubles = (tuple(factor * time for time in whole.times) for factor in (0.5, 2))
        return dataclasses.replace(whole, host_times=halves, late_times=(0.0,) * 4, cold_times=doubles)

    names: tuple[RowName, ...] = ("reference", "compiled", "graphed", "native", "floor")
    rows = tuple(Row(name, "timed", on_gpu(10.0 * number)) for number, name in enumerate(names, start=1))
    gpu = OnGpu(10**9, 2.5e12, "float32", 5e13, state, state)
    one = Cell("mine::scale", "cuda", 2, "16 x 32", "forward", 10**7, "the bare GEMM", rows, gpu=gpu)
    machine = dataclasses.replace(report.machine, gpu_state=state)
    return dataclasses.replace(report, cells=(one,), notes=(), machine=machine)
