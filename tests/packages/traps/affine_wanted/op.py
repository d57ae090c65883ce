"""A scale and a shift per channel, with native gradients."""

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

library = opwright.Library("trap_affine_wanted", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def affine(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """x * weight + bias, with a weight and a bias for each column of x."""
    _rows, channels = x.shape
    if weight.shape != (channels,) or bias.shape != (channels,):
        msg = f"weight and bias must be ({channels},), got {weight.shape} and {bias.shape}"
        raise ValueError(msg)
    return (x * weight + bias).contiguous()


@affine.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    yield make.randn(16, 33), make.randn(33), make.randn(33)
    yield make.randn(3, 8), make.randn(8), make.randn(8)


affine.backward()
