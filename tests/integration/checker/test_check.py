"""Whole checks of small libraries: in every runtime, under sanitizers, and with more than 2**31 bytes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

import opwright
from opwright.checker.kinds import Kind
from opwright.checker.runtime_table import RUNTIME_NAMES

if TYPE_CHECKING:
    from pathlib import Path

    from opwright.checker.verdict import Cell, Report

pytestmark = pytest.mark.usefixtures("forked")

HEAD = """\
from __future__ import annotations
from collections.abc import Sequence
import torch
from torch import Tensor
import opwright
"""


def written(folder: Path, description: str, kernels: str = "") -> Path:
    (folder / "op.py").write_text(HEAD + description)
    if kernels:
        (folder / "cpu.cpp").write_text(KERNEL_HEAD + kernels)
    return folder


def by_op(report: Report) -> dict[str, Cell]:
    assert report.failures == ()
    return {cell.op.partition("::")[2]: cell for cell in report.cells}


# -- an operator without argument checks -----------------------------------------------------------------

TRUSTING = """
library = opwright.Library("trusting", sources=["cpu.cpp"])

@library.op(differentiable=("x",))
def gather_rows(x: Tensor, index: Tensor) -> Tensor:
    if x.dim() != 2 or index.dim() != 1 or x.device != index.device:
        raise ValueError("x must have two dimensions, index one, on the same device")
    return x[index.long()].contiguous()

@gather_rows.domain
def _(x, index):
    return bool(((index >= 0) & (index < x.shape[0])).all())

@gather_rows.samples
def _(make):
    yield make.randn(12, 5), make.randint(0, 12, 7)
"""
TRUSTING_KERNEL = """
#include <algorithm>
#include <cstdlib>
Tensor gather_rows(const Tensor& x, const Tensor& index) {
    opwright::check::dtype(x, "x", opwright::ScalarType::Float);
    opwright::check::dtype(index, "index", opwright::ScalarType::Long);
    opwright::check::rank(x, "x", 2);
    opwright::check::rank(index, "index", 1);
    const Tensor from = torch::stable::contiguous(x), rows = torch::stable::contiguous(index);
    Tensor result = torch::stable::new_empty(x, {rows.size(0), x.size(1)});
    const float* source = from.const_data_ptr<float>();
    const int64_t* row = rows.const_data_ptr<int64_t>();
    float* to = result.mutable_data_ptr<float>();
    for (int64_t i = 0; i < rows.size(0); ++i) {
        if (row[i] < 0 || row[i] >= x.size(0)) std::abort();
        std::copy_n(source + row[i] * x.size(1), x.size(1), to + i * x.size(1));
    }
    return result;
}
OPWRIGHT_IMPL(trusting, CPU, m) {
    m.impl("gather_rows", OPWRIGHT_FN(gather_rows));
}
"""


def test_an_operator_is_not_called_outside_its_declared_domain(tmp_path: Path) -> None:
    path = written(tmp_path, TRUSTING, TRUSTING_KERNEL)
    report = opwright.check(path, runtimes=["eager", "autograd", "compile", "vmap"], quick=True, seed=0)
    assert report.passed, [cell.failures for cell in report.cells]
    for cell in report.cells[:3]:
        assert re.search(r"\d+ variations are outside the domain declared in op\.py and were not called", cell.reason)


# -- a folder with only references ------------------------------------------------------------------------

PYTHON_ONLY = """
library = opwright.Library("python_only")

@library.op(vmap=True)
def wave(x: Tensor, y: Tensor) -> Tensor:
    return x.sin() * y

@wave.samples
def _(make):
    yield make.randn(4, 6), make.randn(4, 6)

@library.op
def joined(
    parts: Sequence[Tensor], times: int, mode: str = "add", offset: Tensor | None = None,
    factors: Sequence[int] | None = None,
) -> Tensor:
    total = torch.zeros_like(parts[0])
    for part in parts:
        total = total + part * times
    if mode == "scale":
        total = total * (2 if factors is None else factors[0])
    return total if offset is None else total + offset

@joined.samples
def _(make):
    yield make.call([make.randn(3, 4), make.randn(3, 4)], 2)
    yield make.call([make.randn(5)], 3, mode="scale", offset=make.randn(5), factors=[3, 4])
"""


@pytest.mark.sample(of="long")
def test_references_alone_pass_wherever_python_runs_and_the_hosts_report_what_they_require(tmp_path: Path) -> None:
    report = opwright.check(written(tmp_path, PYTHON_ONLY), seed=0)
    assert report.passed, report.kinds
    for op in ("wave", "joined"):
        cells = {cell.runtime: cell for cell in report.cells if cell.op == f"python_only::{op}"}
        assert list(cells) == list(RUNTIME_NAMES)
        for runtime, cell in cells.items():
            if runtime.startswith("host"):
                assert cell.status == "not applicable"
                needed = f"no native kernel: python_only::{op} exists only in Python; name sources=[...] in op.py"
                assert cell.reason.startswith(needed)
            elif runtime == "vmap" and op == "joined":
                assert cell.status == "not applicable"
                assert cell.reason == "not claimed; @library.op(vmap=True) claims it"
            else:
                assert cell.status == "passed", (op, runtime)
                assert cell.cases > 0


# -- sanitizers -------------------------------------------------------------------------------------------

KERNEL_HEAD = """\
#include <mutex>
#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>
using opwright::Tensor;
static Tensor twice(const Tensor& x) {
    opwright::check::dtype(x, "x", {opwright::ScalarType::Float});
    const Tensor dense = torch::stable::contiguous(x);
    Tensor result = torch::stable::new_empty(x, x.sizes());
    const float* from = dense.const_data_ptr<float>();
    float* to = result.mutable_data_ptr<float>();
    torch::stable::parallel_for(0, x.numel(), 8, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) to[i] = 2 * from[i];
    });
    return result;
}
"""
UNSEEN = """
library = opwright.Library("unseen", sources=["cpu.cpp"])

@library.op
def reads_past_the_end(x: Tensor) -> Tensor:
    return (2 * x).contiguous()

@library.op
def overflows(x: Tensor) -> Tensor:
    return (2 * x).contiguous()

@library.op
def clean(x: Tensor) -> Tensor:
    import torch._dynamo
    return (2 * x).contiguous()

@reads_past_the_end.samples
@overflows.samples
@clean.samples
def _(make):
    yield make.randn(40)
"""
UNSEEN_KERNELS = """
static volatile float seen;
static volatile int product = 1;
static Tensor reads_past_the_end(const Tensor& x) {
    Tensor result = twice(x);
    seen = result.const_data_ptr<float>()[result.numel()];  // the element
    return result;
}
static Tensor overflows(const Tensor& x) {
    product = 2147483647;
    product = product + static_cast<int>(x.numel());  // the sum
    return twice(x);
}
OPWRIGHT_IMPL(unseen, CPU, m) {
    m.impl("reads_past_the_end", OPWRIGHT_FN(reads_past_the_end));
    m.impl("overflows", OPWRIGHT_FN(overflows));
    m.impl("clean", OPWRIGHT_FN(twice));
}
"""


def place(folder: Path, comment: str) -> str:
    """The location of a line of the kernels, as sanitizers write it."""
    lines = (folder / "cpu.cpp").read_text().splitlines()
    (number,) = [number for number, line in enumerate(lines, 1) if line.endswith(f"// {comment}")]
    return f"{folder}/cpu.cpp:{number}"


@pytest.mark.sample(of="long", by="file")
def test_a_sanitizer_reports_faults_and_lines_that_no_comparison_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The reference of `clean` imports what `torch.func.vjp` would, which sets this variable: not a fault of the kernel.
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    folder = written(tmp_path, UNSEEN, UNSEEN_KERNELS)
    assert opwright.check(folder, ops=["reads_past_the_end"], runtimes=["script"], quick=True, seed=0).passed
    report = opwright.check(folder, runtimes=["eager", "export"], quick=True, sanitize=["address", "undefined"], seed=0)
    assert report.sanitize == ("address", "undefined")
    cells = {(cell.op.partition("::")[2], cell.runtime): cell for cell in report.cells}
    assert cells["clean", "eager"].status == "passed"
    assert cells["clean", "export"].status == "not run"
    assert cells["clean", "export"].reason == "it starts processes that the sanitizer does not check"
    (read,) = cells["reads_past_the_end", "eager"].failures
    (overflow,) = cells["overflows", "eager"].failures
    assert read.kind is overflow.kind is Kind.SANITIZER
    assert "AddressSanitizer: heap-buffer-overflow" in read.got
    assert place(folder, "the element") in read.detail
    assert overflow.got.startswith(place(folder, "the sum"))
    assert "runtime error: signed integer overflow: 40 + 2147483647 cannot be represented in type 'int'" in overflow.got
    assert cells["overflows", "eager"].reason == "stopped at a sanitizer's first report: fix it, and check again"
    assert read.repro.endswith("torch.ops.unseen.reads_past_the_end(x)")


COUNTED = """
library = opwright.Library("counted", sources=["cpu.cpp"])

@library.op
def without_a_lock(x: Tensor) -> Tensor:
    return (2 * x).contiguous()

@library.op
def with_a_lock(x: Tensor) -> Tensor:
    return (2 * x).contiguous()

@without_a_lock.samples
@with_a_lock.samples
def _(make):
    yield make.randn(40)
"""
COUNTED_KERNELS = """
static int64_t calls = 0;
static std::mutex door;
static Tensor without_a_lock(const Tensor& x) {
    ++calls;  // the counter
    return twice(x);
}
static Tensor with_a_lock(const Tensor& x) {
    static const std::vector<float> table(100, 2.0f);
    const std::lock_guard<std::mutex> hold(door);
    calls += static_cast<int64_t>(table[0]);
    return twice(x);
}
OPWRIGHT_IMPL(counted, CPU, m) {
    m.impl("without_a_lock", OPWRIGHT_FN(without_a_lock));
    m.impl("with_a_lock", OPWRIGHT_FN(with_a_lock));
}
"""


@pytest.mark.sample(of="long", by="file")
def test_the_thread_sanitizer_reports_races_that_leave_results_correct(tmp_path: Path) -> None:
    folder = written(tmp_path, COUNTED, COUNTED_KERNELS)
    cells = by_op(opwright.check(folder, runtimes=["eager"], quick=True, sanitize=["thread"], seed=0))
    # The threads that PyTorch starts during the call are not a race.
    assert cells["with_a_lock"].status == "passed", cells["with_a_lock"].failures
    (failure,) = cells["without_a_lock"].failures
    assert failure.kind is Kind.SANITIZER
    # The case depends on when two callers meet.
    assert failure.case.startswith("sample 1")
    assert failure.case.endswith(": from 4 threads at once")
    assert failure.got.startswith("WARNING: ThreadSanitizer: data race")
    assert place(folder, "the counter") in failure.detail


# -- more than 2**31 bytes --------------------------------------------------------------------------------

LARGE = """
library = opwright.Library("large", sources=["cpu.cpp"])

@library.op
def turned(x: Tensor) -> Tensor:
    return 255 - x

@turned.samples
def _(make):
    yield make.randint(0, 256, 33, dtype=torch.uint8)
"""
LARGE_KERNELS = """
static Tensor turned(const Tensor& x) {
    opwright::check::dtype(x, "x", opwright::ScalarType::Byte);
    const Tensor dense = torch::stable::contiguous(x);
    Tensor result = torch::stable::new_empty(x, x.sizes());
    const uint8_t* from = dense.const_data_ptr<uint8_t>();
    uint8_t* to = result.mutable_data_ptr<uint8_t>();
    const int count = static_cast<int>(std::min<int64_t>(x.numel(), 2147483647));
    for (int i = 0; i < count; ++i) to[i] = 255 - from[i];
    return result;
}
OPWRIGHT_IMPL(large, CPU, m) { m.impl("turned", OPWRIGHT_FN(turned)); }
"""


@pytest.mark.sample(of="long")
@pytest.mark.needs("memory")
def test_32_bit_counts_are_wrong_with_more_than_2_to_the_31_bytes(tmp_path: Path) -> None:
    folder = written(tmp_path, LARGE, LARGE_KERNELS)
    cell = by_op(opwright.check(folder, runtimes=["eager"], quick=True, large=True, seed=0))["turned"]
    (failure,) = cell.failures
    assert failure.kind is Kind.INDEX_OVERFLOW
    assert failure.case == "sample 1, size 33 as 2147483649: more than 2^31 bytes"
    assert "x = torch.randint(0, 256, (2147483649,), dtype=torch.uint8)  # different values" in failure.repro
    assert not failure.repro.startswith("# These lines alone")
    assert re.search(r"^uint8 \(2147483649,\), at \[21474836\d\d\]: 255; \d of 2147483649 elements differ", failure.got)


# -- libraries that cannot be checked ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "kind", "words"),
    [
        ("Tensor turned(const Tensor& x) { return undeclared(x); }", Kind.BUILD, "undeclared"),
        ("Tensor turned(const Tensor& x, double factor) { return x; }", Kind.SIGNATURE, "the kernel has parameters 2"),
    ],
)
def test_a_library_that_does_not_build_is_one_fault(tmp_path: Path, kernel: str, kind: Kind, words: str) -> None:
    kernels = f'{kernel}\nOPWRIGHT_IMPL(large, CPU, m) {{ m.impl("turned", OPWRIGHT_FN(turned)); }}\n'
    report = opwright.check(written(tmp_path, LARGE, kernels), quick=True, seed=0)
    assert not report.passed
    assert report.cells == ()
    (failure,) = report.failures
    assert failure.kind is kind
    assert words in failure.got
    assert "cpu.cpp" in failure.detail
