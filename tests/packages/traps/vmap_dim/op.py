"""Sums from each element to the end of a dimension, with a rule for torch.vmap."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"

library = opwright.Library("trap_vmap_dim", sources=["cpu.cpp"])


@library.op
def sum_to_end(x: Tensor, dim: int = 0) -> Tensor:
    """The sum of each element and those after it along a dimension."""
    if x.dim() == 0:
        msg = "x must have dimensions"
        raise ValueError(msg)
    return x.flip(dim).cumsum(dim).flip(dim).contiguous()


@sum_to_end.vmap
def _(info: Any, in_dims: tuple[int, None], x: Tensor, dim: int = 0) -> tuple[Tensor, int]:
    x = x.movedim(in_dims[0], 0)
    if not 1 - x.dim() <= dim < x.dim() - 1:
        msg = f"dim {dim} is out of range"
        raise IndexError(msg)
    inside = dim + 1 if FAULTY or dim >= 0 else dim  # after the batch
    return torch.ops.trap_vmap_dim.sum_to_end(x, inside), 0


@sum_to_end.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[tuple[Tensor, int]]:
    yield make.randn(16, 33), 0
    yield make.randn(3, 8), 1
    yield make.randn(4, 5, 6), 1
