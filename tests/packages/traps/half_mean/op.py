"""The mean of each row, including half precision."""

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

library = opwright.Library("trap_half_mean", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def row_mean(x: Tensor) -> Tensor:
    """The mean of each row of a matrix."""
    _rows, _columns = x.shape
    if not x.is_floating_point():
        msg = f"x must be floating-point, got {x.dtype}"
        raise TypeError(msg)
    return x.double().mean(1).to(x.dtype).contiguous()


@row_mean.samples(dtypes=(torch.float16, torch.bfloat16))
def _(make: Make) -> Iterator[Tensor]:
    yield make.randn(16, 33)
    yield make.rand(5, 128)
