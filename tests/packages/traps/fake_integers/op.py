"""Running sums along a dimension; as in PyTorch, integers are summed in int64."""

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

library = opwright.Library("trap_fake_integers", sources=["cpu.cpp"])


@library.op
def running_sum(x: Tensor, dim: int = -1) -> Tensor:
    """The cumulative sum along a dimension, in int64 for integers."""
    if x.dim() == 0:
        msg = "x must have dimensions"
        raise ValueError(msg)
    return x.cumsum(dim).contiguous()


@running_sum.fake
def _(x: Tensor, dim: int = -1) -> Tensor:
    if FAULTY or x.is_floating_point():
        return x.new_empty(x.shape)
    return x.new_empty(x.shape, dtype=torch.int64)


@running_sum.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[tuple[Tensor, int]]:
    yield make.randn(16, 33), -1
    yield make.randn(4, 5, 6), 1
    yield make.randint(0, 10, 3, 8), 0
