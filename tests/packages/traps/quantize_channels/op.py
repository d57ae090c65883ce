"""Quantization to int8 whose kernel casts to int before it clamps, so large positive values become -128."""

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
library = opwright.Library("trap_quantize_channels", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])

FLOATS = (torch.float32, torch.float64)


@library.op(differentiable=())
def quantize_channels(x: Tensor, scale: Tensor) -> Tensor:
    """x / scale, rounded half to even and saturated to int8; NaN becomes 0.

    Args:
        x: (N, C), float32 or float64, any strides.
        scale: (C,), the same dtype.

    Returns:
        (N, C) int8, contiguous.
    """
    if x.dtype not in FLOATS or scale.dtype != x.dtype:
        msg = f"x and scale must both be float32 or float64, got {x.dtype} and {scale.dtype}"
        raise TypeError(msg)
    if x.dim() != 2 or tuple(scale.shape) != (x.shape[1],):
        msg = f"x and scale must have shapes (N, C) and (C,), got {tuple(x.shape)} and {tuple(scale.shape)}"
        raise ValueError(msg)
    steps = torch.nan_to_num((x / scale).round(), nan=0.0, posinf=127.0, neginf=-128.0)
    return steps.clamp(-128, 127).to(torch.int8).contiguous()


@quantize_channels.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Sample]:
    yield make.call(make.randn(16, 33), make.rand(33) * 0.02 + 0.005)
    yield make.call(make.randn(5, 8) * 30, make.rand(8) + 0.25)
