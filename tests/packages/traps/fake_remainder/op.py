"""Keeps every nth sample of signals."""

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

library = opwright.Library("trap_fake_remainder", sources=["cpu.cpp"])


@library.op
def decimate(signals: Tensor, factor: int = 2) -> Tensor:
    """Every factor-th sample of each row, starting with the first."""
    _rows, _length = signals.shape
    if not 1 <= factor <= 2**30:
        msg = f"factor must be from 1 to 2^30, got {factor}"
        raise ValueError(msg)
    return signals[:, ::factor].clone(memory_format=torch.contiguous_format)


@decimate.fake
def _(signals: Tensor, factor: int = 2) -> Tensor:
    rows, length = signals.shape
    return signals.new_empty(rows, length // factor if FAULTY else (length + factor - 1) // factor)


@decimate.samples
def _(make: Make) -> Iterator[tuple[Tensor, int]]:
    yield make.randn(4, 32), 2
    yield make.randn(3, 12), 3
    yield make.randn(2, 16), 4
