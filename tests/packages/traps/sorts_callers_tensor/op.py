"""The median of each row. The kernel sorts its working copy, but `contiguous` returns a contiguous argument itself, so
the caller's tensor is reordered."""

import os
from collections.abc import Iterator

import torch
from torch import Tensor

import opwright

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_sorts_callers_tensor", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def row_median(x: Tensor) -> Tensor:
    """The median of each row of `x`, the lower of the two in the middle; NaN if a row contains NaN.

    Args:
        x: (rows, columns), float32, with at least one column.

    Returns:
        (rows,), contiguous.
    """
    if x.dim() != 2 or x.shape[1] == 0 or not x.is_floating_point():
        msg = f"x must be (rows, columns), floating, with at least one column, got {tuple(x.shape)} {x.dtype}"
        raise ValueError(msg)
    middle = torch.sort(x, dim=1, stable=True).values[:, (x.shape[1] - 1) // 2]
    return torch.where(x.isnan().any(1), torch.nan, middle)


@row_median.samples
def _(make: opwright.Make) -> Iterator[tuple[Tensor]]:
    yield (make.randn(make.size(6), 11),)
    yield (make.randn(3, 8),)
