"""A sliding median whose window is a static array that all threads share, so concurrent calls return wrong results."""

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
library = opwright.Library("trap_median_filter", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])

FLOATS = (torch.float32, torch.float64)
LIMIT = 255


@library.op
def median_filter(x: Tensor, size: int) -> Tensor:
    """The median of the window around each sample; the first and last sample are repeated at the ends.

    Args:
        x: (B, T) with T >= 1, float32 or float64, any strides. NaN is larger than all numbers.
        size: the length of the window, odd, from 1 to 255.

    Returns:
        (B, T), contiguous.
    """
    if x.dtype not in FLOATS:
        msg = f"x must be float32 or float64, got {x.dtype}"
        raise TypeError(msg)
    if x.dim() != 2 or x.shape[1] < 1:
        msg = f"x must have shape (B, T) with T >= 1, got {tuple(x.shape)}"
        raise ValueError(msg)
    if not 1 <= size <= LIMIT or size % 2 == 0:
        msg = f"size must be odd and 1 to {LIMIT}, got {size}"
        raise ValueError(msg)
    length = x.shape[1]
    at = torch.arange(length, device=x.device)[:, None] + torch.arange(size, device=x.device) - size // 2
    return x[:, at.clamp(0, length - 1)].sort(dim=-1).values[..., size // 2].contiguous()


@median_filter.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Sample]:
    yield make.call(make.randn(3, 40), 5)
    yield make.call(make.randn(1, 33), 9)
