"""Affine quantization to int8, for the integer kernels of a quantized model."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING

import torch
from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"

library = opwright.Library("trap_quantize_half", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op(differentiable=())
def quantize(x: Tensor, scale: float, zero_point: int = 0) -> Tensor:
    """round(x / scale) + zero_point, ties to even, saturated to int8; NaN becomes zero_point."""
    if not (math.isfinite(scale) and scale > 0):
        msg = f"scale must be positive and finite, got {scale}"
        raise ValueError(msg)
    if not -128 <= zero_point <= 127:
        msg = f"zero_point must be from -128 to 127, got {zero_point}"
        raise ValueError(msg)
    level = torch.round(x.double() / scale)
    level = torch.where(level.isnan(), 0.0, level)
    return (level + zero_point).clamp(-128, 127).to(torch.int8).contiguous()


@quantize.samples
def _(make: Make) -> Iterator[tuple[Tensor, float, int]]:
    yield make.randn(16, 33), 0.05, 0
    yield make.randn(40), 0.1, 3
    yield make.randn(2, 3, 5), 0.02, -20
