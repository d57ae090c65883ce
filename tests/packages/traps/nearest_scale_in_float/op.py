"""Nearest-neighbour resizing of rows. Positions are multiples of a float32 scale, and at some sizes are one pixel too
low."""

import os
from collections.abc import Iterator

import torch
from torch import Tensor

import opwright

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_nearest_scale_in_float", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])
MOST = 1 << 20


@library.op
def resize_nearest(x: Tensor, width: int) -> Tensor:
    """Resize each row of `x` to `width` pixels: pixel i is pixel floor(i * columns / width) of the row.

    Args:
        x: (rows, columns), float32, with 1 to 2^20 columns.
        width: from 1 to 2^20.

    Returns:
        (rows, width), contiguous.
    """
    if x.dim() != 2 or not 1 <= x.shape[1] <= MOST or not 1 <= width <= MOST:
        msg = f"x must be (rows, columns) with columns and width of 1 to 2^20, got {tuple(x.shape)} and {width}"
        raise ValueError(msg)
    index = torch.arange(width, device=x.device) * x.shape[1] // width
    return x[:, index].contiguous()


@resize_nearest.samples
def _(make: opwright.Make) -> Iterator[tuple[Tensor, int]]:
    rows = make.size(5)
    yield make.randn(rows, 12), 24
    yield make.randn(rows, 30), 20
    yield make.randn(3, 64), 48
