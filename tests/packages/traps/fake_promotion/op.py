"""The mean of two tensors, whose dtypes may differ."""

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

library = opwright.Library("trap_fake_promotion", sources=["cpu.cpp"])


@library.op
def average(one: Tensor, other: Tensor) -> Tensor:
    """(one + other) / 2, in the wider of their dtypes."""
    if one.shape != other.shape or not one.is_floating_point() or not other.is_floating_point():
        msg = "one and other must be floating-point tensors of one shape"
        raise ValueError(msg)
    return (one * 0.5 + other * 0.5).contiguous()


@average.fake
def _(one: Tensor, other: Tensor) -> Tensor:
    dtype = one.dtype if FAULTY else torch.promote_types(one.dtype, other.dtype)
    return one.new_empty(one.shape, dtype=dtype)


@average.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[tuple[Tensor, Tensor]]:
    yield make.randn(16, 33), make.randn(16, 33)
    yield make.randn(7), make.randn(7)
