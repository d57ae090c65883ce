"""The average of the tokens that a mask selects; the kernel uses the sum of the mask as their number."""

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
library = opwright.Library("trap_masked_average", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])

FLOATS = (torch.float32, torch.float64)


@library.op
def masked_average(x: Tensor, mask: Tensor) -> Tensor:
    """The mean over the positions with a nonzero mask; zeros if there are none. Sums are in float64.

    Args:
        x: (N, L, D), float32 or float64, any strides. Positions that are masked out may contain any values.
        mask: (N, L) uint8, zero or nonzero.

    Returns:
        (N, D), contiguous.
    """
    if x.dtype not in FLOATS or mask.dtype != torch.uint8:
        msg = f"x must be float32 or float64 and mask uint8, got {x.dtype} and {mask.dtype}"
        raise TypeError(msg)
    if x.dim() != 3 or mask.shape != x.shape[:2]:
        msg = f"x and mask must have shapes (N, L, D) and (N, L), got {tuple(x.shape)}, {tuple(mask.shape)}"
        raise ValueError(msg)
    keep = mask != 0
    total = torch.where(keep[..., None], x.double(), 0.0).sum(1)
    return (total / keep.sum(1).clamp(min=1)[:, None]).to(x.dtype).contiguous()


@masked_average.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Sample]:
    yield make.call(make.randn(4, 12, 8), make.randint(0, 2, 4, 12, dtype=torch.uint8))
    yield make.call(make.randn(1, 33, 5), make.randint(0, 2, 1, 33, dtype=torch.uint8))
