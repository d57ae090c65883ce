"""Nearest-neighbor upsampling; the fake kernel's result is always contiguous, but the kernel keeps channels last."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import torch
from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_upsample_nearest", sources=["cpu.cpp"])


@library.op
def upsample_nearest(x: Tensor, factor: int) -> Tensor:
    """x, (N, C, H, W) float32, with each pixel repeated factor times, from 1 to 16, in both directions.

    The result is channels last if x is channels last and not contiguous, and contiguous otherwise.
    """
    if x.dtype != torch.float32:
        msg = f"x must be float32, got {x.dtype}"
        raise TypeError(msg)
    if x.dim() != 4:
        msg = f"x must have shape (N, C, H, W), got {tuple(x.shape)}"
        raise ValueError(msg)
    if not 1 <= factor <= 16:
        msg = f"factor must be 1 to 16, got {factor}"
        raise ValueError(msg)
    n, c, h, w = x.shape
    result = x[:, :, :, None, :, None].expand(n, c, h, factor, w, factor).reshape(n, c, h * factor, w * factor)
    if x.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous():
        return result.contiguous(memory_format=torch.channels_last)
    return result.contiguous()


if FAULTY:

    @upsample_nearest.fake
    def always_contiguous(x: Tensor, factor: int) -> Tensor:
        if x.dtype != torch.float32:
            msg = f"x must be float32, got {x.dtype}"
            raise TypeError(msg)
        if x.dim() != 4:
            msg = f"x must have shape (N, C, H, W), got {tuple(x.shape)}"
            raise ValueError(msg)
        if not 1 <= factor <= 16:
            msg = f"factor must be 1 to 16, got {factor}"
            raise ValueError(msg)
        n, c, h, w = x.shape
        return x.new_empty((n, c, h * factor, w * factor))


@upsample_nearest.samples
def _(make: Make) -> Iterator[object]:
    yield make.randn(2, 3, make.size(5), make.size(7)), 2
    yield make.randn(1, 4, 8, 8), 3
