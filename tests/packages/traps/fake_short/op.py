"""Cuts a signal into overlapping frames."""

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

library = opwright.Library("trap_fake_short", sources=["cpu.cpp"])


@library.op
def frames(signal: Tensor, width: int, hop: int) -> Tensor:
    """The frames of `width` samples inside a signal, `hop` samples apart; none for a signal shorter than a frame."""
    if signal.dim() != 1 or not 1 <= width <= 2**20 or not 1 <= hop <= 2**20:
        msg = "signal must be a vector, width and hop from 1 to 2^20"
        raise ValueError(msg)
    if signal.shape[0] < width:
        return signal[:0, None].expand(0, width).clone(memory_format=torch.contiguous_format)
    return signal.unfold(0, width, hop).clone(memory_format=torch.contiguous_format)


@frames.fake
def _(signal: Tensor, width: int, hop: int) -> Tensor:
    count = (signal.shape[0] - width) // hop + 1
    return signal.new_empty(count if FAULTY else torch.sym_max(count, 0), width)


@frames.samples
def _(make: Make) -> Iterator[tuple[Tensor, int, int]]:
    yield make.randn(100), 16, 8
    yield make.randn(33), 5, 5
