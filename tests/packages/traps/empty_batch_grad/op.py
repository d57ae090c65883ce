"""Scales channels by learned factors, with a native gradient."""

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

library = opwright.Library("trap_empty_batch_grad", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def channel_scale(x: Tensor, factors: Tensor) -> Tensor:
    """x * factors, for a matrix x with one factor per column."""
    _rows, columns = x.shape
    if factors.shape != (columns,) or factors.dtype != x.dtype or not x.is_floating_point():
        msg = "factors must have an element for each column, and the dtype of x, a floating-point one"
        raise ValueError(msg)
    return (x * factors).contiguous()


@channel_scale.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[tuple[Tensor, Tensor]]:
    yield make.randn(16, 33), make.randn(33)
    yield make.randn(3, 8), make.randn(8)


channel_scale.backward()
