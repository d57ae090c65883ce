"""Dot products of rows. The rule for torch.vmap treats the first dimension as the batch and ignores `in_dims`."""

import os
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

import opwright

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_vmap_batch_dim", sources=["cpu.cpp"])


@library.op
def row_dots(x: Tensor, y: Tensor) -> Tensor:
    """The dot products of the rows of `x` with those of `y`.

    Args:
        x: (..., features), float32.
        y: the same shape, float32.

    Returns:
        (...), contiguous.
    """
    if x.dim() == 0 or x.shape != y.shape or x.dtype != y.dtype or not x.is_floating_point():
        msg = f"x and y must be floating, of one shape with 1 dimension or more, got {tuple(x.shape)}, {tuple(y.shape)}"
        raise ValueError(msg)
    return (x * y).sum(-1).contiguous()


@row_dots.vmap
def _(info: Any, in_dims: tuple[int | None, ...], x: Tensor, y: Tensor) -> tuple[Tensor, int]:
    def batched(tensor: Tensor, dim: int | None) -> Tensor:
        if dim is None:
            return tensor.expand(info.batch_size, *tensor.shape)
        return tensor if FAULTY else tensor.movedim(dim, 0)

    return torch.ops.trap_vmap_batch_dim.row_dots(batched(x, in_dims[0]), batched(y, in_dims[1])), 0


@row_dots.samples
def _(make: opwright.Make) -> Iterator[tuple[Tensor, Tensor]]:
    rows, features = make.size(5), make.size(12)
    yield make.randn(rows, features), make.randn(rows, features)
    yield make.randn(2, 3, 4), make.randn(2, 3, 4)
