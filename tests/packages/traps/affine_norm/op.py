"""Layer normalization whose native weight gradient is zero if the input does not require a gradient."""

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
library = opwright.Library("trap_affine_norm", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def affine_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    """Normalize the last dimension of x, (..., D), to mean 0 and variance 1, times weight (D) plus bias (D).

    All tensors are float32, D is at least 1, eps is positive. The computation is in float64.
    """
    if x.dtype != torch.float32 or weight.dtype != torch.float32 or bias.dtype != torch.float32:
        msg = "x, weight and bias must be float32"
        raise TypeError(msg)
    if x.dim() < 1 or x.shape[-1] < 1:
        msg = f"x must have a last dimension of at least 1, got {tuple(x.shape)}"
        raise ValueError(msg)
    if weight.dim() != 1 or bias.dim() != 1 or weight.shape[0] != x.shape[-1] or bias.shape[0] != x.shape[-1]:
        msg = "weight and bias must have the size of the last dimension of x"
        raise ValueError(msg)
    if not eps > 0:
        msg = f"eps must be positive, got {eps}"
        raise ValueError(msg)
    numbers = x.double()
    centered = numbers - numbers.mean(-1, keepdim=True)
    scale = ((centered * centered).mean(-1, keepdim=True) + eps).rsqrt()
    return (centered * scale * weight.double() + bias.double()).to(torch.float32).contiguous()


@affine_norm.samples
def _(make: Make) -> Iterator[object]:
    rows, width = make.size(12), make.size(33)
    yield make.randn(rows, width), make.randn(width), make.randn(width)
    yield make.randn(2, 3, 8), make.randn(8), make.randn(8), 1e-3


affine_norm.backward()
