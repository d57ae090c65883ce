"""Sums of magnitudes along a dimension."""

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

library = opwright.Library("trap_fake_negative_dim", sources=["cpu.cpp"])


@library.op
def magnitude(x: Tensor, dim: int = 0) -> Tensor:
    """The sum of the magnitudes along a dimension, which is removed."""
    if x.dim() == 0 or not -x.dim() <= dim < x.dim() or not x.is_floating_point():
        msg = f"x must be floating-point, dim one of its dimensions, got {dim}"
        raise ValueError(msg)
    return x.abs().sum(dim).contiguous()


@magnitude.fake
def _(x: Tensor, dim: int = 0) -> Tensor:
    if not FAULTY and dim < 0:
        dim += x.dim()
    return x.new_empty(x.shape[:dim] + x.shape[dim + 1 :])


@magnitude.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[tuple[Tensor, int]]:
    yield make.randn(16, 33), 0
    yield make.randn(4, 5, 6), 1
