"""Multiplies the frames of a signal by a Gaussian window, whose table is cached."""

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

library = opwright.Library("trap_window_cache", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def apply_window(frames: Tensor, sharpness: float = 2.5) -> Tensor:
    """frames * exp(-(sharpness * t)**2 / 2), where t runs from -1 to 1 over each frame."""
    _count, length = frames.shape
    if not 0 <= sharpness <= 1e6:
        msg = f"sharpness must be from 0 to 1e6, got {sharpness}"
        raise ValueError(msg)
    at = torch.arange(length, dtype=torch.float64, device=frames.device)
    t = sharpness * ((at - (length - 1) / 2) / (length / 2))
    return (frames.double() * torch.exp(-0.5 * (t * t))).to(frames.dtype).contiguous()


@apply_window.samples
def _(make: Make) -> Iterator[tuple[Tensor, float]]:
    yield make.randn(4, 64), 2.5
    yield make.randn(3, 33), 1.0
    yield make.randn(2, 100), 4.0
