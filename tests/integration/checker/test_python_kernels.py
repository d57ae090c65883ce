"""Kernels written in Python: the two examples, and faults in them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import opwright
from opwright.checker.kinds import Kind
from opwright.errors import LoadError

pytestmark = pytest.mark.usefixtures("forked")

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.sample(of="long")
@pytest.mark.parametrize("name", ["triton_swiglu", "numba_recurrence"])
def test_an_example_is_correct(name: str) -> None:
    report = opwright.check(EXAMPLES / name, quick=True, seed=0)
    assert report.passed, [(cell.runtime, cell.failures) for cell in report.cells if cell.failures]
    ran = {cell.runtime for cell in report.cells if cell.status == "passed"}
    assert ran == {"eager", "autograd", "compile", "trace", "script"}


def test_a_runtime_that_requires_native_code_does_not_apply() -> None:
    runtimes = ["host-linked", "host-script", "host-aoti"]
    report = opwright.check(EXAMPLES / "numba_recurrence", runtimes=runtimes)
    assert {cell.status for cell in report.cells} == {"not applicable"}
    assert all("exists only in Python" in cell.reason for cell in report.cells)


@pytest.mark.parametrize("mask", ["at <= count", "at < count - 1", "at < block"])
def test_a_wrong_mask_at_the_end_of_a_block_is_noticed(tmp_path: Path, mask: str) -> None:
    shutil.copytree(EXAMPLES / "triton_swiglu", tmp_path / "wrong")
    file = tmp_path / "wrong/op.py"
    text, count = re.subn(r"inside = at < count", f"inside = {mask}", file.read_text())
    assert count == 1
    file.write_text(text)
    report = opwright.check(tmp_path / "wrong", runtimes=["eager"], quick=True, fail_fast=True, seed=0)
    assert not report.passed
    # With a corrupted heap, a call may also hang.
    kinds = {Kind.HEAP, Kind.OUT_OF_BOUNDS, Kind.UNINITIALISED, Kind.CRASH, Kind.HANG}
    assert report.kinds <= kinds, report.kinds


@pytest.mark.parametrize(("name", "op"), [("triton_swiglu", "swiglu"), ("numba_recurrence", "recurrence")])
def test_an_example_is_timed(name: str, op: str) -> None:
    report = opwright.bench(EXAMPLES / name, ops=[op], directions=["forward"], rounds=2, compiled=False)
    assert report.cells
    assert all(cell.timing("native") is not None for cell in report.cells), [cell.rows for cell in report.cells]


def test_two_kernels_for_a_device_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "op.py").write_text(
        "import opwright\nfrom torch import Tensor\n"
        'library = opwright.Library("two_kernels", sources=["cpu.cpp"])\n'
        "@library.op\ndef twice(x: Tensor) -> Tensor:\n    return 2 * x\n"
        "twice.kernel(device='cpu')(lambda x: 2 * x)\n"
    )
    (tmp_path / "cpu.cpp").write_text(
        "#include <opwright/op.h>\n"
        "opwright::Tensor twice(const opwright::Tensor& x) { return x; }\n"
        'OPWRIGHT_IMPL(two_kernels, CPU, m) { m.impl("twice", OPWRIGHT_FN(twice)); }\n'
    )
    with pytest.raises(
        LoadError, match=r"two_kernels::twice has a kernel for cpu in its sources and one in op.py: keep"
    ):
        opwright.open(tmp_path)
