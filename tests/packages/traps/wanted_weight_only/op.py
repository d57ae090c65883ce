"""Columns scaled by weights. The gradient of the weights is summed in the loop that computes the gradient of x, and is
zero if x does not require a gradient."""

import os
from collections.abc import Iterator

from torch import Tensor

import opwright

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_wanted_weight_only", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def scale_columns(x: Tensor, weight: Tensor) -> Tensor:
    """x * weight.

    Args:
        x: (rows, columns), float32.
        weight: (columns,), float32.

    Returns:
        (rows, columns), contiguous.
    """
    if x.dim() != 2 or weight.shape != x.shape[1:] or x.dtype != weight.dtype:
        msg = f"x must be (rows, columns) and weight (columns,), got {tuple(x.shape)} and {tuple(weight.shape)}"
        raise ValueError(msg)
    return (x * weight).contiguous()


@scale_columns.samples
def _(make: opwright.Make) -> Iterator[tuple[Tensor, Tensor]]:
    rows, columns = make.size(9), make.size(14)
    yield make.randn(rows, columns), make.randn(columns)
    yield make.randn(2, 3), make.randn(3)


scale_columns.backward()
