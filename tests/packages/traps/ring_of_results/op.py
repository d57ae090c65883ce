"""Cross products. Results are stored in a ring of eight preallocated buffers, so the ninth call overwrites the result
of the first."""

import os
from collections.abc import Iterator

import torch
from torch import Tensor

import opwright

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_ring_of_results", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def cross_rows(a: Tensor, b: Tensor) -> Tensor:
    """The cross products of the rows of `a` and `b`, both (N, 3) float32; the result is contiguous."""
    if a.dim() != 2 or a.shape[1] != 3 or a.shape != b.shape or a.dtype != b.dtype:
        msg = f"a and b must both be (N, 3) and of one dtype, got {tuple(a.shape)} and {tuple(b.shape)}"
        raise ValueError(msg)
    products: Tensor = torch.linalg.cross(a, b)
    return products.contiguous()


@cross_rows.samples
def _(make: opwright.Make) -> Iterator[tuple[Tensor, Tensor]]:
    rows = make.size(20)
    yield make.randn(rows, 3), make.randn(rows, 3)
    yield make.randn(5, 3), make.randn(5, 3)
