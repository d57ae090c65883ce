"""Root-mean-square normalization of rows, with a native gradient."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import torch
from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"

library = opwright.Library("trap_norm_offset", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def rms_norm(x: Tensor, weight: Tensor, offset: float = 0.0, eps: float = 1e-6) -> Tensor:
    """x / sqrt(mean(x**2) + eps) * (weight + offset) for each row; Gemma's offset is 1."""
    _rows, columns = x.shape
    if weight.shape != (columns,) or weight.dtype != x.dtype or not x.is_floating_point():
        msg = "weight must have an element for each column, and the dtype of x, a floating-point one"
        raise ValueError(msg)
    if not -1e3 <= offset <= 1e3 or not 1e-12 <= eps <= 1:
        msg = "offset must be from -1000 to 1000, eps from 1e-12 to 1"
        raise ValueError(msg)
    wide = x.double()
    scale = (wide.square().mean(1, keepdim=True) + eps).rsqrt()
    return (wide * scale * (weight.double() + offset)).to(x.dtype).contiguous()


@rms_norm.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[tuple[Tensor, Tensor, float, float]]:
    yield make.randn(16, 33), make.rand(33) + 0.5, 0.0, 1e-6
    yield make.randn(3, 8), make.randn(8), 0.0, 1e-5


rms_norm.backward()
