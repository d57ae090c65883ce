"""Averages over windows of signals."""

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

library = opwright.Library("trap_avg_pool_ceil", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def average(x: Tensor, width: int, stride: int, padding: int = 0, ceil_mode: bool = False) -> Tensor:
    """The means of windows of each row, including padding, as in torch.nn.functional.avg_pool1d."""
    channels, length = x.shape
    if channels == 0 or length == 0 or not 1 <= width <= 2**20 or not 1 <= stride <= 2**20:
        msg = "x must have elements, width and stride must be from 1 to 2^20"
        raise ValueError(msg)
    if not 0 <= padding <= width // 2 or width > length + 2 * padding:
        msg = "padding must be from 0 to width / 2, width at most length + 2 * padding"
        raise ValueError(msg)
    pooled = torch.nn.functional.avg_pool1d(x[None], width, stride, padding, ceil_mode, count_include_pad=True)
    return pooled[0].contiguous()


@average.samples
def _(make: Make) -> Iterator[tuple[Tensor, int, int, int, bool]]:
    yield make.randn(4, 32), 2, 2, 0, False
    yield make.randn(3, 33), 3, 2, 1, False
    yield make.randn(3, 16), 4, 4, 0, True
