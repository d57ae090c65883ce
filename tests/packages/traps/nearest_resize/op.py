"""Nearest-neighbour resampling of the columns of a matrix."""

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

library = opwright.Library("trap_nearest_resize", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def resize_nearest(x: Tensor, size: int) -> Tensor:
    """Column i of the result is column floor(i * columns / size) of the matrix x."""
    _rows, columns = x.shape
    if columns == 0:
        msg = "x must have columns"
        raise ValueError(msg)
    if not 1 <= size <= 2**24:
        msg = f"size must be from 1 to 2^24, got {size}"
        raise ValueError(msg)
    return x.index_select(1, torch.arange(size, device=x.device) * columns // size).contiguous()


@resize_nearest.samples
def _(make: Make) -> Iterator[tuple[Tensor, int]]:
    yield make.randn(3, 16), 32
    yield make.randn(4, 12), 8
    yield make.randn(2, 8), 20
