"""Zeroes the padding of sequences; the native gradient zeroes that of the incoming gradient in place."""

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
library = opwright.Library("trap_mask_padding", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op(differentiable=("x",))
def mask_padding(x: Tensor, lengths: Tensor) -> Tensor:
    """x, (B, T, C) float32, with zeros from step lengths[b]; lengths is (B) int64, any values."""
    if x.dtype != torch.float32 or lengths.dtype != torch.int64:
        msg = "x must be float32 and lengths int64"
        raise TypeError(msg)
    if x.dim() != 3 or lengths.dim() != 1 or lengths.shape[0] != x.shape[0]:
        msg = "x must have shape (B, T, C), lengths (B)"
        raise ValueError(msg)
    kept = torch.arange(x.shape[1], device=x.device)[None] < lengths[:, None]
    return torch.where(kept[..., None], x, torch.zeros_like(x)).contiguous()


@mask_padding.samples
def _(make: Make) -> Iterator[object]:
    batch = make.size(5)
    yield make.randn(batch, 12, 7), make.randint(0, 13, batch)
    yield make.randn(2, 33, 1), make.randint(0, 34, 2)


mask_padding.backward()
