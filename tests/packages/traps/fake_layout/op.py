"""A hard clamp to [0, 6] that keeps the memory format of its argument."""

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

library = opwright.Library("trap_fake_layout")


@library.op
def clamp6(x: Tensor) -> Tensor:
    """The elements of x, clamped to [0, 6], in x's memory format."""
    if not x.is_floating_point():
        msg = f"x must be floating-point, got {x.dtype}"
        raise TypeError(msg)
    return torch.clamp(x, 0, 6)


@clamp6.fake
def _(x: Tensor) -> Tensor:
    return x.new_empty(x.shape) if FAULTY else torch.empty_like(x)


@clamp6.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Tensor]:
    yield make.randn(2, 3, 8, 8)
    yield make.randn(16, 33)
