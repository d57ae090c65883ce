"""Dequantization of int8 whose fake kernel ignores out_dtype, so torch.compile treats float64 as float32."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Optional

import torch
from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_dequantize", sources=["cpu.cpp"])


def _check(q: Tensor, scale: Tensor, out_dtype: Optional[torch.dtype]) -> None:
    if q.dtype != torch.int8 or scale.dtype != torch.float32:
        msg = "q must be int8 and scale float32"
        raise TypeError(msg)
    if q.dim() != 2 or scale.dim() != 1 or scale.shape[0] != q.shape[1]:
        msg = "q must have shape (R, C), scale (C)"
        raise ValueError(msg)
    if out_dtype not in (None, torch.float32, torch.float64):
        msg = f"out_dtype must be float32 or float64, got {out_dtype}"
        raise TypeError(msg)


@library.op
def dequantize(q: Tensor, scale: Tensor, out_dtype: Optional[torch.dtype] = None) -> Tensor:
    """q, (R, C) int8, times scale, (C) float32, in out_dtype, which is float32 or float64."""
    _check(q, scale, out_dtype)
    return (q.double() * scale.double()).to(out_dtype or torch.float32).contiguous()


@dequantize.fake
def _(q: Tensor, scale: Tensor, out_dtype: Optional[torch.dtype] = None) -> Tensor:
    _check(q, scale, out_dtype)
    if FAULTY:
        return torch.empty(q.shape, dtype=scale.dtype, device=q.device)
    return torch.empty(q.shape, dtype=out_dtype or torch.float32, device=q.device)


@dequantize.samples
def _(make: Make) -> Iterator[object]:
    columns = make.size(33)
    yield make.randint(-128, 128, make.size(16), columns, dtype=torch.int8), make.rand(columns)
    yield make.randint(-128, 128, 4, 8, dtype=torch.int8), make.rand(8), torch.float32
