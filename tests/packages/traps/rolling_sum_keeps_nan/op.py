"""Sums over a sliding window, updated by adding the element that enters and subtracting the one that leaves: a NaN or
an infinity never leaves."""

import os
from collections.abc import Iterator

from torch import Tensor

import opwright

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_rolling_sum_keeps_nan", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def rolling_sum(x: Tensor, window: int = 4) -> Tensor:
    """The sum of every `window` neighbours in the rows of `x`.

    Args:
        x: (rows, times), float32.
        window: from 1 to times.

    Returns:
        (rows, times - window + 1), contiguous.
    """
    if x.dim() != 2 or not 1 <= window <= x.shape[1]:
        msg = f"x must have 2 dimensions and window must be 1 to x.shape[1], got {tuple(x.shape)} and {window}"
        raise ValueError(msg)
    return x.unfold(1, window, 1).sum(2).contiguous()


@rolling_sum.samples
def _(make: opwright.Make) -> Iterator[object]:
    rows = make.size(6)
    yield make.randn(rows, 50)
    yield make.call(make.randn(rows, 21), window=5)
    yield make.call(make.randn(2, 9), window=1)
