"""Reads a signal at positions between its samples, with a native gradient."""

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

library = opwright.Library("trap_coordinate_grad", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def read_at(signal: Tensor, position: Tensor) -> Tensor:
    """The signal at each position, interpolated linearly; positions beyond the ends read the first or last sample."""
    if signal.dim() != 1 or signal.shape[0] < 2 or position.dim() != 1 or position.dtype != signal.dtype:
        msg = "signal and position must be vectors of one dtype, signal with two samples"
        raise ValueError(msg)
    if not signal.is_floating_point():
        msg = f"signal must be floating-point, got {signal.dtype}"
        raise TypeError(msg)
    count = signal.shape[0]
    kept = position.clamp(0, count - 1)
    left = kept.detach().floor().clamp(max=count - 2).to(torch.int64)
    part = kept - left
    return (signal[left] * (1 - part) + signal[left + 1] * part).contiguous()


@read_at.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[tuple[Tensor, Tensor]]:
    yield make.randn(33), make.rand(16) * 32
    yield make.randn(5), make.rand(7) * 4


read_at.backward()
