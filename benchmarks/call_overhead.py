"""Times a call through PyTorch against a call of the same OpenCV function from C++.

    python benchmarks/call_overhead.py [--rounds 40] [--json FILE]

First question: `torch.ops.opencv.warp_perspective` on a 1080p float32 image compared with bare `cv::warpPerspective`
into a preallocated Mat, in this process, with the same OpenCV. Both are called in turn, round after round. Prints the
medians of the times and of the rounds' ratios.

Second question: the fixed cost of a call, on an 8 x 8 image, compared with PyTorch operators with a similar number of
arguments, and with the bare function.

Third question: the cost of the smallest call, with one float32 tensor of 8 elements in and one out, compared with
`aten.neg`: by the kind of gradient (none is recorded), by how the kernel allocates its result, and without a result of
its own. Times the processor time of this thread, all rows in turn, round after round.

Compares every result with OpenCV's own before timing.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import statistics
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch

import opwright

if TYPE_CHECKING:
    from collections.abc import Callable

OP = Path(__file__).resolve().parents[1] / "ops" / "warp_perspective"
WARP = torch.tensor([[0.9, 0.12, 20.0], [-0.08, 1.05, 15.0], [1e-5, 2e-5, 1.0]], dtype=torch.float64)
CALLS = 2000
SMALL_CALLS = 500
WARM_UP = 3
ATEN_NEG = "torch.ops.aten.neg"
DESCRIBED = """
import opwright
from torch import Tensor
library = opwright.Library("call_overhead", sources=["cpu.cpp"])
@library.op
def neg(x: Tensor) -> Tensor:
    return -x
neg.backward()
@library.op
def neg_derived(x: Tensor) -> Tensor:
    return -x
@library.op(differentiable=())
def itself(x: Tensor) -> Tensor:
    return x
@library.op(differentiable=())
def stable_empty_like(x: Tensor) -> Tensor:
    return -x
@library.op(differentiable=())
def stable_new_empty(x: Tensor) -> Tensor:
    return -x
"""
KERNELS = """
#include <opwright/check.h>
#include <opwright/empty.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>
using opwright::Tensor;
namespace {
template <auto allocated>
Tensor neg(const Tensor& x) {
    opwright::check::device(x, "x", opwright::DeviceType::CPU);
    opwright::check::dtype(x, "x", opwright::ScalarType::Float);
    opwright::check::contiguous(x, "x");
    Tensor result = allocated(x);
    const float* from = x.const_data_ptr<float>();
    float* into = result.mutable_data_ptr<float>();
    const int64_t count = x.numel();
    for (int64_t i = 0; i < count; ++i) into[i] = -from[i];
    return result;
}
Tensor neg_backward(const Tensor& grad, const Tensor& x) { return neg<opwright::empty_like>(grad); }
Tensor new_empty(const Tensor& x) { return torch::stable::new_empty(x, x.sizes()); }
Tensor itself(const Tensor& x) { return x; }
}
OPWRIGHT_IMPL(call_overhead, CPU, m) {
    m.impl("neg", OPWRIGHT_FN(neg<opwright::empty_like>));
    m.impl("neg_backward", OPWRIGHT_FN(neg_backward));
    m.impl("neg_derived", OPWRIGHT_FN(neg<opwright::empty_like>));
    m.impl("itself", OPWRIGHT_FN(itself));
    m.impl("stable_empty_like", OPWRIGHT_FN(neg<torch::stable::empty_like>));
    m.impl("stable_new_empty", OPWRIGHT_FN(neg<new_empty>));
}
"""


def large(op: Callable[..., torch.Tensor], bare: SimpleNamespace, rounds: int) -> dict[str, Any]:
    """Time the operator and the bare function in turn, on 1080p float32."""
    image = torch.rand(1080, 1920)
    output = torch.empty(1080, 1920)
    if not torch.equal(op(image, WARP, 1080, 1920), bare.warp_perspective(image, WARP, 1080, 1920)):
        sys.exit("the operator and OpenCV alone differ, so the times are meaningless")
    ours, theirs = [], []
    for number in range(rounds + WARM_UP):
        started = time.perf_counter()
        op(image, WARP, 1080, 1920)
        op_s = time.perf_counter() - started
        (bare_s,) = bare.time_warp_perspective(image, WARP, output, 1)
        if number >= WARM_UP:
            ours.append(op_s)
            theirs.append(bare_s)
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    return {"op_s": ours, "bare_s": theirs, "ratio_median": statistics.median(ratios)}


def per_call(call: Callable[[], Any], rounds: int) -> list[float]:
    """The duration of one call in microseconds: each entry is the mean over several calls."""
    for _ in range(CALLS):
        call()
    means = []
    for _ in range(rounds):
        started = time.perf_counter()
        for _ in range(CALLS):
            call()
        means.append((time.perf_counter() - started) / CALLS * 1e6)
    return means


def small(op: Callable[..., torch.Tensor], bare: SimpleNamespace, rounds: int) -> dict[str, list[float]]:
    """Time the fixed cost at 8 x 8, and that of PyTorch's operators."""
    image, eye = torch.rand(8, 8), torch.eye(3, dtype=torch.float64)
    output = torch.empty(8, 8)
    if not torch.equal(op(image, eye, 8, 8), image):
        sys.exit("the identity warp changes the image, so the times are meaningless")
    nchw, grid = image[None, None], torch.zeros(1, 8, 8, 2)
    resize, sample = torch.ops.aten.upsample_bilinear2d, torch.ops.aten.grid_sampler
    bare_us = [seconds * 1e6 for seconds in bare.time_warp_perspective(image, eye, output, CALLS)]
    return {
        "torch.ops.opencv.warp_perspective": per_call(lambda: op(image, eye, 8, 8), rounds),
        "torch.ops.aten.grid_sampler (5 arguments)": per_call(lambda: sample(nchw, grid, 0, 0, False), rounds),
        "torch.ops.aten.upsample_bilinear2d (5 arguments)": per_call(
            lambda: resize(nchw, [8, 8], False, None, None),
            rounds,
        ),
        "cv::warpPerspective, bare, in C++": bare_us,
    }


def smallest(rounds: int) -> dict[str, list[float]]:
    """Time a call with one tensor of 8 elements, in microseconds: each entry is the mean over several calls."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "op.py").write_text(DESCRIBED)
        (Path(folder) / "cpu.cpp").write_text(KERNELS)
        opwright.open(folder)
    ops = torch.ops.call_overhead
    rows: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "a native neg with a native backward": ops.neg.default,
        "a native neg whose gradient is derived": ops.neg_derived.default,
        "a native neg without a gradient, allocated by torch::stable::empty_like": ops.stable_empty_like.default,
        "a native neg without a gradient, allocated by torch::stable::new_empty": ops.stable_new_empty.default,
        "a native operator that returns its argument": ops.itself.default,
        ATEN_NEG: torch.ops.aten.neg.default,
    }
    x = torch.randn(8)
    for name, op in rows.items():
        if not torch.equal(op(x), x if op is ops.itself.default else -x):
            sys.exit(f"{name}: the result is wrong, so the times are meaningless")
    times: dict[str, list[float]] = {name: [] for name in rows}
    for number in range(rounds + WARM_UP):
        for name, op in rows.items():
            started = time.thread_time()
            for _ in range(SMALL_CALLS):
                op(x)
            if number >= WARM_UP:
                times[name].append((time.thread_time() - started) / SMALL_CALLS * 1e6)
    return times


def main() -> None:
    """Compare, time and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40, help="rounds of each measurement")
    parser.add_argument("--json", metavar="FILE", help="write all times as JSON")
    asked = parser.parse_args()
    opwright.open(OP)
    bare = SimpleNamespace(**runpy.run_path(str(OP / "bare" / "bare.py")))
    op = torch.ops.opencv.warp_perspective
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads, {os.cpu_count()} processors")
    big = large(op, bare, asked.rounds)
    print(
        f"1080p float32: operator {statistics.median(big['op_s']) * 1e3:.3f} ms, "
        f"OpenCV alone {statistics.median(big['bare_s']) * 1e3:.3f} ms, ratio {big['ratio_median']:.3f}"
    )
    costs = small(op, bare, asked.rounds)
    print("8 x 8, one call:")
    for row, times in costs.items():
        print(f"{statistics.median(times):8.2f} µs  {row}  (min {min(times):.2f})")
    least = smallest(asked.rounds)
    print("8 elements, one call:")
    for row, times in least.items():
        ratio = statistics.median(a / b for a, b in zip(times, least[ATEN_NEG], strict=True))
        print(f"{statistics.median(times):8.3f} µs  {ratio:.3f} of {ATEN_NEG}  {row}")
    if asked.json:
        measured = {"1080p": big, "8x8_us": costs, "8_elements_us": least}
        Path(asked.json).write_text(json.dumps(measured, indent=2) + "\n")


if __name__ == "__main__":
    main()
