"""Survival curves; the vmap rule also adds 1 to a negative dim, which then is another dimension or the batch."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_survival", sources=["cpu.cpp"])


@library.op
def survival(hazard: Tensor, dim: int) -> Tensor:
    """The running product of 1 - hazard along dim.

    hazard is float32, with at least one dimension. The computation is in float64, and the result float32.
    """
    if hazard.dtype != torch.float32:
        msg = f"hazard must be float32, got {hazard.dtype}"
        raise TypeError(msg)
    if not -hazard.dim() <= dim < hazard.dim():
        msg = f"dim must be a dimension of hazard, got {dim} for {hazard.dim()} dimensions"
        raise ValueError(msg)
    return torch.cumprod(1 - hazard.double(), dim).to(torch.float32).contiguous()


@survival.vmap
def _(info: Any, in_dims: tuple[int, None], hazard: Tensor, dim: int) -> tuple[Tensor, int]:
    rank = hazard.dim() - 1
    if not -rank <= dim < rank:
        msg = f"dim must be a dimension of hazard, got {dim} for {rank} dimensions"
        raise ValueError(msg)
    batched = hazard.movedim(in_dims[0], 0)
    # The batch comes first, so a nonnegative dimension moves by one.
    if FAULTY:
        return torch.ops.trap_survival.survival(batched, dim + 1), 0
    return torch.ops.trap_survival.survival(batched, dim + 1 if dim >= 0 else dim), 0


@survival.samples
def _(make: Make) -> Iterator[object]:
    yield make.rand(make.size(6), make.size(17)), 1
    yield make.rand(5, 3, 4), 0
