"""A sine oscillator whose kernel accumulates the phase in float32 for float32 signals, so long signals drift."""

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
library = opwright.Library("trap_oscillator", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])

FLOATS = (torch.float32, torch.float64)


@library.op
def oscillator(frequency: Tensor, sample_rate: float = 16000.0) -> Tensor:
    """The sine of the phase that accumulates from a varying frequency.

    Args:
        frequency: (B, T) in Hz, float32 or float64, any strides.
        sample_rate: in Hz, positive and finite.

    Returns:
        (B, T), contiguous: sin(2 pi (f_0 + ... + f_t) / sample_rate). The phase is kept in float64.
    """
    if frequency.dtype not in FLOATS:
        msg = f"frequency must be float32 or float64, got {frequency.dtype}"
        raise TypeError(msg)
    if frequency.dim() != 2:
        msg = f"frequency must have shape (B, T), got {tuple(frequency.shape)}"
        raise ValueError(msg)
    if not 0 < sample_rate < float("inf"):
        msg = f"sample_rate must be positive and finite, got {sample_rate}"
        raise ValueError(msg)
    turns = torch.cumsum(frequency.double() / sample_rate, dim=-1)
    return torch.sin(turns.frac() * (2 * torch.pi)).to(frequency.dtype).contiguous()


@oscillator.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Sample]:
    yield make.call(make.rand(4, 50) * 440)
    yield make.call(make.rand(1, 33) * 100 + 200, sample_rate=22050.0)
