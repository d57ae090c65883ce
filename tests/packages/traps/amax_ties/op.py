"""The largest element of each row, with a native gradient."""

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

library = opwright.Library("trap_amax_ties", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def row_max(x: Tensor) -> Tensor:
    """The largest element of each row; elements tied for the maximum share its gradient."""
    _rows, columns = x.shape
    if columns == 0:
        msg = "x must have columns"
        raise ValueError(msg)
    return x.amax(1)


@row_max.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Tensor]:
    yield make.randn(16, 33)
    yield make.randn(3, 8)


row_max.backward()
