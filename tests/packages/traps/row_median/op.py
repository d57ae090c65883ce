"""The median of each row."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"

library = opwright.Library("trap_row_median", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def row_median(x: Tensor) -> Tensor:
    """The median of each row, the lower one if there are two; NaN for a row with NaN."""
    _rows, columns = x.shape
    if columns == 0 or not x.is_floating_point():
        msg = "x must be floating-point and have columns"
        raise ValueError(msg)
    return x.median(1).values.contiguous()


@row_median.samples
def _(make: Make) -> Iterator[Tensor]:
    yield make.randn(16, 33)
    yield make.randn(5, 8)
