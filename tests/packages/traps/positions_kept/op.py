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

library = opwright.Library("trap_positions_kept", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def row_peak(x: Tensor) -> Tensor:
    """The largest element of each row; among equal elements, the first gets the gradient."""
    _rows, columns = x.shape
    if columns == 0 or not x.is_floating_point():
        msg = "x must be floating-point and have columns"
        raise ValueError(msg)
    return x.gather(1, x.detach().argmax(1, keepdim=True))[:, 0].contiguous()


@row_peak.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Tensor]:
    yield make.randn(16, 33)
    yield make.randn(3, 8)


row_peak.backward()
