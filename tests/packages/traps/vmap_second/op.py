"""Scales the columns of a matrix, with a rule for torch.vmap."""

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

library = opwright.Library("trap_vmap_second", sources=["cpu.cpp"])


@library.op
def scale_columns(x: Tensor, factors: Tensor) -> Tensor:
    """x * factors for a matrix, or for a stack of matrices with separate or common factors."""
    if x.dim() not in (2, 3) or factors.dim() not in (1, x.dim() - 1) or factors.dtype != x.dtype:
        msg = "x must be a matrix or a stack of them, factors a vector, or one for each matrix"
        raise ValueError(msg)
    if factors.shape[-1] != x.shape[-1] or (factors.dim() == 2 and factors.shape[0] != x.shape[0]):
        msg = f"factors must fit x {x.shape}, got {factors.shape}"
        raise ValueError(msg)
    return (x * (factors[:, None] if factors.dim() == 2 else factors)).contiguous()


@scale_columns.vmap
def _(info: Any, in_dims: tuple[int | None, int | None], x: Tensor, factors: Tensor) -> tuple[Tensor, int]:
    x_dim, factors_dim = in_dims
    size = info.batch_size
    x = x.expand(size, *x.shape) if x_dim is None else x.movedim(x_dim, 0)
    if factors_dim is None:
        factors = factors.expand(size, *factors.shape)
    elif not FAULTY:
        factors = factors.movedim(factors_dim, 0)
    if x.dim() == 3:
        return torch.ops.trap_vmap_second.scale_columns(x, factors), 0
    if x.dim() != 4 or factors.dim() not in (2, 3):
        msg = "x must be a matrix or a stack of them, factors a vector, or one for each matrix"
        raise ValueError(msg)
    stack = x.shape[1]
    if factors.dim() == 2:
        factors = factors[:, None].expand(size, stack, factors.shape[1])
    result = torch.ops.trap_vmap_second.scale_columns(x.flatten(0, 1), factors.flatten(0, 1))
    return result.unflatten(0, (size, stack)), 0


@scale_columns.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[tuple[Tensor, Tensor]]:
    yield make.randn(16, 33), make.randn(33)
    yield make.randn(3, 8), make.randn(8)
    yield make.randn(4, 3, 8), make.randn(4, 8)
