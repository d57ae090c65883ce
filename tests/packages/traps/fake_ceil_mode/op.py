"""Pooling of rows. The fake kernel, which computes the shape of the result for torch.compile, omits the last, shorter
group that `ceil` adds."""

import os
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional

import opwright

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_fake_ceil_mode", sources=["cpu.cpp"])


@library.op
def pool_rows(x: Tensor, size: int, ceil: bool = False) -> Tensor:
    """The maximum of every `size` neighbours in the rows of `x`.

    Args:
        x: (rows, columns), float32.
        size: the size of a group, from 1 to 65536.
        ceil: whether fewer than `size` remaining columns form a group.

    Returns:
        (rows, columns / size), rounded down or, with `ceil`, up; contiguous.
    """
    if x.dim() != 2 or not x.is_floating_point() or not 1 <= size <= 65536:
        msg = f"x must have 2 dimensions and be floating, and size must be 1 to 65536, got {tuple(x.shape)} and {size}"
        raise ValueError(msg)
    rows, columns = x.shape
    groups = (columns + size - 1) // size if ceil else columns // size
    if groups * size > columns:
        x = functional.pad(x, (0, groups * size - columns), value=-torch.inf)
    return x[:, : groups * size].reshape(rows, groups, size).amax(2).contiguous()


@pool_rows.fake
def _(x: Tensor, size: int, ceil: bool = False) -> Tensor:
    rows, columns = x.shape
    if not FAULTY and ceil:
        columns = columns + size - 1
    return x.new_empty(rows, columns // size)


@pool_rows.samples
def _(make: opwright.Make) -> Iterator[object]:
    rows = make.size(4)
    yield make.randn(rows, 13), 3
    yield make.call(make.randn(rows, 12), 4, ceil=True)
