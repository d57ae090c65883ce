"""Resamples signals at fractional positions."""

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

library = opwright.Library("trap_edge_read", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def resample(signals: Tensor, positions: Tensor) -> Tensor:
    """Each signal at positions from 0 to length - 1, interpolated linearly; 0 outside and at NaN."""
    _rows, length = signals.shape
    if length == 0 or positions.dim() != 1 or positions.dtype != signals.dtype:
        msg = "signals must be (rows, length) with length > 0, positions (n,) of their dtype"
        raise ValueError(msg)
    known = (positions >= 0) & (positions <= length - 1)
    at = torch.where(known, positions, 0.0).double()
    left = at.detach().long()
    weight = at - left
    first = signals[:, left].double()
    second = signals[:, (left + 1).clamp(max=length - 1)].double()
    between = (weight > 0).expand(first.shape)
    # An infinite neighbour with weight 0 must not produce NaN.
    other = torch.where(between, second, first)
    mixed = torch.where(between, first * (1 - weight) + other * weight, first)
    return torch.where(known, mixed, 0.0).to(signals.dtype).contiguous()


@resample.samples
def _(make: Make) -> Iterator[tuple[Tensor, Tensor]]:
    yield make.randn(4, 32), make.rand(20) * 31
    yield make.randn(1, 9), make.rand(5) * 8
