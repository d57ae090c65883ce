from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from torch import Tensor

import opwright
from opwright.bencher.gpu_state import GpuState
from opwright.bencher.notes import notes_of
from opwright.bencher.on_gpu import OnGpu
from opwright.bencher.result import Cell, Row
from opwright.bencher.timer import Timing

if TYPE_CHECKING:
    from pathlib import Path

    from opwright.spec import Library


@pytest.fixture
def library(tmp_path: Path) -> Library:
    described = opwright.Library("noted")
    described.sources = [tmp_path / "cpu.cpp", tmp_path / "cuda.cu"]

    @described.op
    def plain(x: Tensor) -> Tensor:
        return x + 1

    @plain.floor("one sum")
    def _(x: Tensor) -> Tensor:
        return x + 1

    return described


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
@pytest.mark.parametrize(("with_cuda", "state"), [(True, "compiled, not run"), (False, "neither compiled nor run")])
def test_cuda_sources_that_did_not_run_on_a_gpu_get_a_note(library: Library, state: str, *, with_cuda: bool) -> None:
    notes = list(notes_of(library, [], [], (), with_cuda=with_cuda))
    assert notes == [f"CUDA: this machine has no GPU; cuda.cu: {state}"]


def test_each_floor_from_op_py_gets_a_note_and_the_default_gets_one(library: Library) -> None:
    ops = list(library.ops.values())
    cells = [
        Cell("aten::sin", "cpu", 1, size, "forward", 8, f"a copy that moves {size}", ()) for size in ("8 B", "16 B")
    ]
    notes = list(notes_of(library, ops, [], cells, with_cuda=True))
    assert "floor of plain: one sum (forward)" in notes
    assert len([note for note in notes if note.startswith("floor, where op.py defines none: ")]) == 1


def test_the_reasons_why_rounds_stopped_are_counted() -> None:
    library = opwright.Library("noted")
    reasons = ("the 2 s were used up", "20 rounds", "the 2 s were used up", "")
    cells = [
        Cell("aten::sin", "cpu", 1, "8", "forward", 8, "", (Row("reference", "timed", Timing((1.0,), 1, reason)),))
        for reason in reasons
    ]
    assert list(notes_of(library, [], [], cells, with_cuda=False))[-2:] == [
        "why the rounds stopped in 2 of 4 cells: the 2 s were used up",
        "why the rounds stopped in 1 of 4 cells: 20 rounds",
    ]


def test_an_operator_without_a_kernel_for_the_device_gets_a_note() -> None:
    library = opwright.Library("aten_like")
    cells = [Cell(name, "cpu", 1, "8", "forward", 8, "", ()) for name in ("aten::sin", "aten::matmul")]
    notes = list(notes_of(library, [], [], cells, with_cuda=False))
    note = "has no native kernel on cpu; it runs its reference through the dispatcher"
    assert notes == [f"native: aten::matmul {note}"]


def notes_of_gpu(*cells: Cell) -> list[str]:
    return list(notes_of(opwright.Library("noted"), [], [], cells, with_cuda=True))


FAST, SLOW = GpuState(1980, 1980, 2619, "P0", ()), GpuState(1500, 1980, 2619, "P0", ("software power cap",))


def cell_on_gpu(size: str, gpu: OnGpu, late: float = 0.0) -> Cell:
    timing = Timing((1.0, 1.0), 1, "2 rounds", late_times=(late, late))
    return Cell("aten::sin", "cuda", 1, size, "forward", 8, "", (Row("native", "timed", timing),), gpu=gpu)


def test_a_row_on_a_separate_stream_gets_a_note_with_its_cells() -> None:
    gpu = OnGpu(0, 2e12, "", 0.0, FAST, FAST)
    notes = notes_of_gpu(cell_on_gpu("8", gpu), cell_on_gpu("16", gpu, 0.5), cell_on_gpu("32", gpu, 0.5))
    (note,) = [note for note in notes if "stream" in note]
    assert note.startswith("native of aten::sin works on a separate stream")
    assert "does not wait: 16 forward, 32 forward. Its times include all work on the GPU" in note


def test_a_gpu_that_slows_down_gets_a_note_with_its_clocks() -> None:
    notes = notes_of_gpu(
        cell_on_gpu("8", OnGpu(0, 2e12, "", 0.0, FAST, FAST)), cell_on_gpu("16", OnGpu(0, 2e12, "", 0.0, FAST, SLOW))
    )
    (note,) = [note for note in notes if "clock" in note]
    assert note == (
        "the SM clock dropped by more than 10 % while aten::sin was timed, 16 forward: before, SM 1980 of 1980 MHz, "
        "memory 2619 MHz, P0; after, SM 1500 of 1980 MHz, memory 2619 MHz, P0, throttled by: software power cap"
    )


def test_the_speeds_of_a_gpu_get_a_note_each_and_so_do_unknown_clocks() -> None:
    gpu = OnGpu(16, 2.5e12, "float32 in TF32", 3.5e14, None, None)
    notes = notes_of_gpu(cell_on_gpu("8", gpu), cell_on_gpu("16", gpu))
    for note in (
        "the clocks of the GPU are unknown: nvidia-smi is not on the PATH, or does not report them",
        "a large copy within the GPU's memory moves 2500 GB/s, read and written",
        "a large matrix product (GEMM) reaches 350 TFLOP/s in float32 in TF32",
    ):
        assert notes.count(note) == 1
