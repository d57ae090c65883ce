"""The mean power of signals, whose kernel assumes that dims is sorted and otherwise reduces only some of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_mean_power", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def mean_power(x: Tensor, dims: Sequence[int], keepdim: bool = False) -> Tensor:
    """The mean of x squared over dims, in any order, or over all dimensions if dims is empty; NaN for no elements.

    x is float32. Dimensions may be negative and must not repeat. The computation is in float64.
    """
    if x.dtype != torch.float32:
        msg = f"x must be float32, got {x.dtype}"
        raise TypeError(msg)
    rank = x.dim()
    reduced: list[int] = []
    for dim in map(int, dims):
        if not -rank <= dim < rank:
            msg = f"dims must be dimensions of x, got {dim} for {rank} dimensions"
            raise ValueError(msg)
        if dim % rank not in reduced:
            reduced.append(dim % rank)
    if len(reduced) != len(dims):
        msg = "a dimension occurs twice in dims"
        raise ValueError(msg)
    squares = x.double().square()
    return squares.mean(sorted(reduced) or list(range(rank)), keepdim).to(torch.float32).contiguous()


@mean_power.samples
def _(make: Make) -> Iterator[object]:
    yield make.randn(make.size(4), make.size(9), 16), [0, 2], False
    yield make.randn(4, 5, 6), [-1], True
    yield make.randn(7, 3), [], False
