from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any

import pytest
import torch

import opwright
from opwright.bencher.bench import is_part_of_another
from opwright.errors import SpecError, ToolchainError

if TYPE_CHECKING:
    from opwright.bencher.result import Cell
    from tests.unit.conftest import Describe

SCALE = """
@library.op
def scale(x: Tensor, factor: float = 2.0) -> Tensor:
    return x * factor

@scale.sweep
def _(make):
    for size in (8, 64, 1024):
        yield f"{size} elements", (make.randn(size),)
"""
COUNTED = """
@library.op
def counted(x: Tensor) -> int:
    return x.shape[0]

@counted.samples
def _(make):
    yield make.randn(3)
"""
WITH_BACKWARD = """
@library.op
def bent(x: Tensor) -> Tensor:
    return x * 2

@bent.samples
def _(make):
    yield make.randn(3)

@bent.backward(saves=())
def bent_backward(grad: Tensor) -> Tensor:
    return grad * 2
"""


quick_bench = functools.partial(opwright.bench, rounds=2, compiled=False)


class Recorder:
    """Records the progress of a bench."""

    def __init__(self) -> None:
        self.sizes: int | None = -1
        self.begun: list[str] = []
        self.rounds = self.done = self.sizes_done = 0

    def start(self, sizes: int | None) -> None:
        self.sizes = sizes

    def begin(self, cell: str) -> None:
        self.begun.append(cell)

    def round(self) -> None:
        self.rounds += 1

    def end(self, cell: Cell) -> None:
        assert cell.rows
        self.done += 1

    def end_size(self) -> None:
        self.sizes_done += 1


def test_every_size_is_timed_in_every_direction_with_reference_and_floor(describe: Describe) -> None:
    library = describe(SCALE)
    recorder = Recorder()
    report = opwright.bench(library, rounds=3, compiled=False, progress=recorder)
    assert report.passed
    directions = ["forward", "recorded", "backward", "both"]
    assert [(cell.size, cell.direction) for cell in report.cells] == [
        (f"{size} elements", direction) for size in (8, 64, 1024) for direction in directions
    ]
    for cell in report.cells:
        assert [(row.name, row.status) for row in cell.rows] == [
            ("reference", "timed"),
            ("native", "timed"),
            ("floor", "timed"),
        ]
        assert cell.ended == "3 rounds"
        ratio = cell.ratio("native")
        assert ratio is not None
        assert ratio.median > 0
    assert (recorder.sizes, recorder.sizes_done, recorder.done, recorder.rounds) == (3, 3, 12, 36)
    assert recorder.begun[0] == "scale, 8 elements: forward"


def test_an_operator_without_a_gradient_is_timed_only_forward(describe: Describe) -> None:
    report = quick_bench(describe(COUNTED))
    assert [(cell.size, cell.direction) for cell in report.cells] == [("sample 1", "forward")]
    note = "counted has no sweep, so its samples are timed: define @counted.sweep in op.py to choose sizes"
    assert note in report.notes


def test_a_backward_is_timed_with_its_operator_and_separately_only_on_request(describe: Describe) -> None:
    library = describe(WITH_BACKWARD)
    assert [name for name, op in library.ops.items() if is_part_of_another(op)] == ["bent_backward"]
    report = quick_bench(library)
    assert {cell.op for cell in report.cells} == {f"{library.namespace}::bent"}
    note = "not timed separately, because other operators call them: bent_backward; --op times them"
    assert note in report.notes
    requested = quick_bench(library, ops=["bent_backward"], directions=["forward"])
    assert {cell.op for cell in requested.cells} == {f"{library.namespace}::bent_backward"}
    assert not any("not timed separately" in note for note in requested.notes)


def test_the_requested_sizes_directions_threads_and_dtype_are_timed(describe: Describe) -> None:
    recording_floor = """
seen = []

@scale.floor("nothing")
def _(x, factor):
    seen.append((x.dtype, torch.get_num_threads(), torch.is_grad_enabled()))
"""
    library = describe(SCALE + recording_floor)
    before = torch.get_num_threads()
    report = quick_bench(
        library, sizes=["64", "1024"], directions=["both", "forward"], threads=[1, 3], dtype="bfloat16"
    )
    assert [(cell.threads, cell.size.split()[0], cell.direction) for cell in report.cells] == [
        (threads, size, direction) for threads in (1, 3) for size in ("64", "1024") for direction in ("forward", "both")
    ]
    assert set(library.ops["scale"].reference.__globals__["seen"]) == {
        (torch.bfloat16, threads, recording) for threads in (1, 3) for recording in (False, True)
    }
    assert report.dtype == "bfloat16"
    assert torch.get_num_threads() == before


def test_a_wrong_operator_is_reported_and_not_timed(describe: Describe) -> None:
    library = describe(SCALE)
    quick_bench(library, sizes=["8"])

    def doubled_and_more(x: torch.Tensor, factor: float = 2.0) -> torch.Tensor:
        return x * factor + 1

    kept = torch.library.Library(library.namespace, "IMPL")
    kept.impl("scale", doubled_and_more, "CPU")
    report = quick_bench(library, sizes=["8 "], directions=["forward", "backward"])
    assert not report.passed
    assert report.timed
    for cell in report.cells:
        reference, native, floor = cell.rows
        assert (reference.status, native.status, floor.status) == ("timed", "wrong", "timed")
        assert native.timing is None
        assert native.reason.startswith("float32 (8,), at [0]: ")
        assert "8 of 8 elements differ, the largest difference is 1" in native.reason
        assert cell.ratio("native") is None


def test_a_floor_that_raises_is_a_fault_and_the_other_rows_are_timed(describe: Describe) -> None:
    text = SCALE + "@scale.floor('a mistake')\ndef _(x, factor):\n    raise ValueError('no floor')\n"
    report = quick_bench(describe(text), sizes=["8 "], directions=["forward"])
    assert not report.passed
    (cell,) = report.cells
    assert [(row.name, row.status, row.reason) for row in cell.rows] == [
        ("reference", "timed", ""),
        ("native", "timed", ""),
        ("floor", "raises", "ValueError: no floor"),
    ]


def test_the_json_contains_the_times_of_all_rounds(describe: Describe) -> None:
    report = opwright.bench(describe(SCALE), rounds=4, compiled=False, sizes=["64"], directions=["forward"])
    plain = report.to_json()
    assert {"passed", "namespace", "machine", "dtype", "seed", "rule", "cells", "notes", "seconds"} <= set(plain)
    (cell,) = plain["cells"]
    assert (cell["threads"], cell["bytes"], cell["floor"]) == (torch.get_num_threads(), 512, "a copy that moves 512 B")
    for row in cell["rows"]:
        assert len(row["seconds"]["times"]) == row["rounds"] == 4
        low, high = row["seconds"]["quartiles"]
        assert low <= row["seconds"]["median"] <= high
        assert row["calls"] >= 1
    assert cell["rows"][0]["ratio"]["median"] == 1
    assert {"processor", "instruction_sets", "memory_bytes"} <= set(plain["machine"]["machine"])
    assert plain["machine"]["pytorch"] == torch.__version__


@pytest.mark.parametrize(
    ("requested", "message"),
    [
        ({"ops": ["shale"]}, "unknown operator 'shale': expected one of scale"),
        ({"directions": ["sideways"]}, "unknown direction 'sideways': expected one of forward, recorded"),
        ({"dtype": "int8"}, "'int8' is not a floating-point dtype: expected float32, bfloat16, float16 or float64"),
        ({"dtype": "flat32"}, "'flat32' is not a floating-point dtype"),
        ({"threads": [2, 0]}, "threads must be positive, got 0"),
        ({"rounds": 0}, "rounds must be positive, got 0"),
        ({"seconds": -1.0, "rounds": None}, "seconds must be positive, got -1.0"),
        ({"sizes": ["7"]}, "no size has '7' in its label: expected a part of one of 8 elements, 64 elements, "),
    ],
)
def test_an_invalid_argument_is_an_error(describe: Describe, requested: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        quick_bench(describe(SCALE), **requested)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_without_a_gpu_cuda_is_an_error(describe: Describe) -> None:
    with pytest.raises(ToolchainError, match=r"this PyTorch has no GPU to use: .* Leave out --device cuda"):
        opwright.bench(describe(SCALE), devices=["cuda"])


def test_the_sizes_of_a_data_dependent_sweep_are_not_counted_in_advance(describe: Describe) -> None:
    recorder = Recorder()
    text = SCALE.replace("(make.randn(size),)", "(make.randn(size) * make.randn(1).item(),)")
    quick_bench(describe(text), sizes=["8 "], directions=["forward"], progress=recorder)
    assert (recorder.sizes, recorder.sizes_done) == (None, 1)
