from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from torch import Tensor

import opwright
from opwright.bencher.notes import notes_of
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


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is there")
@pytest.mark.parametrize(("with_cuda", "state"), [(True, "compiled, not run"), (False, "neither compiled nor run")])
def test_cuda_sources_that_no_gpu_ran_get_a_note(library: Library, state: str, *, with_cuda: bool) -> None:
    notes = list(notes_of(library, [], [], (), with_cuda=with_cuda))
    assert notes == [f"CUDA: this machine has no GPU; cuda.cu: {state}"]


def test_each_floor_of_the_author_gets_a_note_and_the_copy_gets_one(library: Library) -> None:
    ops = list(library.ops.values())
    cells = [
        Cell("aten::sin", "cpu", 1, size, "forward", 8, f"a copy that moves {size}", ()) for size in ("8 B", "16 B")
    ]
    notes = list(notes_of(library, ops, [], cells, with_cuda=True))
    assert "floor of plain: one sum (forward)" in notes
    assert len([note for note in notes if note.startswith("floor, where op.py defines none: ")]) == 1


def test_the_reasons_why_rounds_ended_are_counted() -> None:
    library = opwright.Library("noted")
    reasons = ("the 2 s were used up", "20 rounds", "the 2 s were used up", "")
    cells = [
        Cell("aten::sin", "cpu", 1, "8", "forward", 8, "", (Row("reference", "timed", Timing((1.0,), 1, reason)),))
        for reason in reasons
    ]
    assert list(notes_of(library, [], [], cells, with_cuda=False))[-2:] == [
        "why the rounds ended in 2 of 4 cells: the 2 s were used up",
        "why the rounds ended in 1 of 4 cells: 20 rounds",
    ]


def test_an_operator_without_a_kernel_for_the_device_gets_a_note() -> None:
    library = opwright.Library("aten_like")
    cells = [Cell(name, "cpu", 1, "8", "forward", 8, "", ()) for name in ("aten::sin", "aten::matmul")]
    notes = list(notes_of(library, [], [], cells, with_cuda=False))
    note = "has no native kernel on cpu; it runs its reference through the dispatcher"
    assert notes == [f"native: aten::matmul {note}"]
