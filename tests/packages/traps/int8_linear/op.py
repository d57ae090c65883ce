"""A linear layer whose kernel caches packed weights by address, so weights changed in place are ignored."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import torch
from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright import Make, Sample

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_int8_linear", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])

FLOATS = (torch.float32, torch.float64)


@library.op(differentiable=("x", "scale"))
def int8_linear(x: Tensor, weight: Tensor, scale: Tensor) -> Tensor:
    """x @ weight.T * scale, accumulated in float64.

    Args:
        x: (N, K), float32 or float64, any strides.
        weight: (M, K) int8.
        scale: (M,), the dtype of x, one per output.

    Returns:
        (N, M), contiguous.
    """
    if x.dtype not in FLOATS or scale.dtype != x.dtype or weight.dtype != torch.int8:
        msg = f"x, weight, scale must be float, int8, float, got {x.dtype}, {weight.dtype}, {scale.dtype}"
        raise TypeError(msg)
    if x.dim() != 2 or weight.dim() != 2 or weight.shape[1] != x.shape[1] or scale.shape != weight.shape[:1]:
        msg = (
            f"x, weight and scale must have shapes (N, K), (M, K) and (M,), got {tuple(x.shape)}, "
            f"{tuple(weight.shape)} and {tuple(scale.shape)}"
        )
        raise ValueError(msg)
    return (x.double() @ weight.double().T * scale.double()).to(x.dtype).contiguous()


@int8_linear.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Sample]:
    yield make.call(make.randn(8, 20), make.randint(-127, 128, 12, 20, dtype=torch.int8), make.rand(12) * 0.01)
    yield make.call(make.randn(3, 33), make.randint(-127, 128, 7, 33, dtype=torch.int8), make.rand(7) * 0.01)
