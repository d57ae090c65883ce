"""An envelope follower whose kernel makes the thread flush denormals to zero and does not restore the mode."""

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
library = opwright.Library("trap_envelope_follower", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])

FLOATS = (torch.float32, torch.float64)
FLOOR = 1e-20


@library.op
def envelope_follower(signal: Tensor, decay: float = 0.99) -> Tensor:
    """y[t] = max(|x[t]|, decay * y[t - 1]), starting with y = 0; values below 1e-20 become 0.

    Args:
        signal: (B, T), float32 or float64, any strides.
        decay: from 0 to 1.

    Returns:
        (B, T), contiguous.
    """
    _check(signal, decay)
    level = signal.new_zeros(signal.shape[0])
    levels = []
    for sample in signal.unbind(1):
        level = torch.maximum(sample.abs(), level * decay)
        level = torch.where(level < FLOOR, torch.zeros_like(level), level)
        levels.append(level)
    return torch.stack(levels, dim=1).contiguous() if levels else torch.empty_like(signal).contiguous()


@envelope_follower.fake
def _(signal: Tensor, decay: float = 0.99) -> Tensor:
    _check(signal, decay)
    return signal.new_empty(signal.shape)


def _check(signal: Tensor, decay: float) -> None:
    if signal.dtype not in FLOATS:
        msg = f"signal must be float32 or float64, got {signal.dtype}"
        raise TypeError(msg)
    if signal.dim() != 2:
        msg = f"signal must have shape (B, T), got {tuple(signal.shape)}"
        raise ValueError(msg)
    if not 0 <= decay <= 1:
        msg = f"decay must be 0 to 1, got {decay}"
        raise ValueError(msg)


@envelope_follower.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Sample]:
    yield make.call(make.randn(4, 33))
    yield make.call(make.randn(1, 50), 0.5)
