"""Products with broadcasting, with a rule for torch.vmap."""

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

library = opwright.Library("trap_vmap_rank", sources=["cpu.cpp"])


@library.op
def product(x: Tensor, y: Tensor) -> Tensor:
    """x * y, with broadcasting."""
    if x.dtype != y.dtype or not x.is_floating_point():
        msg = "x and y must be of one floating-point dtype"
        raise TypeError(msg)
    return (x * y).contiguous()


@product.vmap
def _(info: Any, in_dims: tuple[Any, ...], x: Tensor, y: Tensor) -> tuple[Tensor, int]:
    x_dim, y_dim = in_dims
    x_rank = x.dim() - (x_dim is not None)
    y_rank = y.dim() - (y_dim is not None)
    rank = 0 if FAULTY else max(x_rank, y_rank)
    # The batch comes first, followed by dimensions of 1 for those that an example lacks.
    if x_dim is not None:
        x = x.movedim(x_dim, 0)
        x = x.reshape(x.shape[0], *[1] * (rank - x_rank), *x.shape[1:])
    if y_dim is not None:
        y = y.movedim(y_dim, 0)
        y = y.reshape(y.shape[0], *[1] * (rank - y_rank), *y.shape[1:])
    return torch.ops.trap_vmap_rank.product(x, y), 0


@product.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[tuple[Tensor, Tensor]]:
    yield make.randn(16, 33), make.randn(33)
    yield make.randn(3, 8), make.randn(3, 8)
    yield make.randn(4, 1, 5), make.randn(6, 1)
