"""Blends two uint8 images."""

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

library = opwright.Library("trap_blend_saturate", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def add_weighted(one: Tensor, other: Tensor, alpha: float = 0.5, beta: float = 0.5, gamma: float = 0.0) -> Tensor:
    """one * alpha + other * beta + gamma, rounded and saturated to 0..255."""
    if one.dtype != torch.uint8 or other.dtype != torch.uint8 or one.shape != other.shape:
        msg = "one and other must be uint8, of one shape"
        raise ValueError(msg)
    if not all(-1e6 <= factor <= 1e6 for factor in (alpha, beta, gamma)):
        msg = "alpha, beta and gamma must be from -1e6 to 1e6"
        raise ValueError(msg)
    level = one.double() * alpha + other.double() * beta + gamma
    return level.round().clamp(0, 255).to(torch.uint8).contiguous()


@add_weighted.samples
def _(make: Make) -> Iterator[tuple[Tensor, Tensor, float, float, float]]:
    yield (
        make.randint(0, 256, 16, 33, dtype=torch.uint8),
        make.randint(0, 256, 16, 33, dtype=torch.uint8),
        0.5,
        0.5,
        0.0,
    )
    yield (
        make.randint(0, 256, 8, 9, 3, dtype=torch.uint8),
        make.randint(0, 256, 8, 9, 3, dtype=torch.uint8),
        0.7,
        0.3,
        0.0,
    )
