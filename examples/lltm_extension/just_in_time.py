"""Builds the cell just in time, runs one step and its backward, and compares both with plain PyTorch.

    python just_in_time.py [files | strings | torch | cuda]

files: `opwright.load`. strings: `opwright.load_inline`. torch: `torch.utils.cpp_extension.load`, which accepts the same
arguments. cuda: the mixed extension, for a CUDA build of PyTorch and a GPU.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from lltm import cell_of, plain_cell  # type: ignore[import-not-found]  # next to this script, where Python finds it
from torch.utils import cpp_extension

import opwright

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "lltm.cpp"
TOLERANCE = 1e-10  # float64, and sums of a few hundred terms

BUILDS: dict[str, Callable[[], Any]] = {
    "files": lambda: opwright.load("lltm_cpp", [SOURCE]),
    "strings": lambda: opwright.load_inline("lltm_cpp", SOURCE.read_text(), extra_include_paths=[HERE]),
    "torch": lambda: cpp_extension.load("lltm_cpp", [str(SOURCE)]),
    "cuda": lambda: opwright.load("lltm_cuda", [HERE / "lltm_cuda.cpp", HERE / "lltm_cuda_kernel.cu"]),
}


def step(cell: Callable[..., tuple[Tensor, Tensor]], arguments: list[Tensor]) -> list[Tensor]:
    """Both results of a step, and the five gradients of a loss that depends on both."""
    leaves = [argument.clone().requires_grad_() for argument in arguments]
    new_h, new_cell = cell(*leaves)
    loss = (new_h.sin() + new_cell.cos()).sum()
    return [new_h.detach(), new_cell.detach(), *torch.autograd.grad(loss, leaves)]


def main() -> None:
    """Build, run, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("route", nargs="?", choices=BUILDS, default="files")
    route: str = parser.parse_args().route
    started = time.perf_counter()
    extension = BUILDS[route]()
    seconds = time.perf_counter() - started
    batch, features, state = 16, 32, 128
    shapes = [(batch, features), (3 * state, state + features), (3 * state,), (batch, state), (batch, state)]
    device = "cuda" if route == "cuda" else "cpu"
    arguments = [torch.randn(shape, dtype=torch.float64, device=device) for shape in shapes]
    pairs = zip(step(cell_of(extension), arguments), step(plain_cell, arguments), strict=True)
    difference = max(float((ours - theirs).abs().max()) for ours, theirs in pairs)
    print(f"{route}: built and loaded in {seconds:.1f} s; differs from plain PyTorch by at most {difference:.1e}")
    if not difference < TOLERANCE:
        sys.exit(f"expected less than {TOLERANCE:g}")


if __name__ == "__main__":
    main()
