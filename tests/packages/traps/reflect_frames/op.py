"""Mirrored frames of audio; the kernel mirrors an index only once, so it reads outside a short signal."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import torch
from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright import Make, Sample

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_reflect_frames", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])

FLOATS = (torch.float32, torch.float64)
LIMIT = 65536


@library.op
def reflect_frames(signal: Tensor, size: int, hop: int) -> Tensor:
    """Frames centered on every hop of a signal that is mirrored (cba|abc|cba) as often as needed.

    Args:
        signal: (B, T) with T >= 1, float32 or float64, any strides.
        size: the number of samples in a frame, from 1 to 65536.
        hop: the distance between frames, from 1 to 65536.

    Returns:
        (B, F, size), contiguous, with F = (T + hop // 2) // hop: frame f starts at f * hop + hop // 2 - size // 2.
    """
    if signal.dtype not in FLOATS:
        msg = f"signal must be float32 or float64, got {signal.dtype}"
        raise TypeError(msg)
    if signal.dim() != 2 or signal.shape[1] < 1:
        msg = f"signal must have shape (B, T) with T >= 1, got {tuple(signal.shape)}"
        raise ValueError(msg)
    if not 1 <= size <= LIMIT or not 1 <= hop <= LIMIT:
        msg = f"size and hop must be 1 to {LIMIT}, got {size} and {hop}"
        raise ValueError(msg)
    length = signal.shape[1]
    count = (length + hop // 2) // hop
    begin = torch.arange(count, device=signal.device) * hop + (hop // 2 - size // 2)
    at = (begin[:, None] + torch.arange(size, device=signal.device)).remainder(2 * length)
    return signal[:, torch.where(at < length, at, 2 * length - 1 - at)].contiguous()


@reflect_frames.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Sample]:
    yield make.call(make.randn(2, 100), 25, 10)
    yield make.call(make.randn(1, 64), 32, 16)
