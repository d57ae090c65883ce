"""A quantile of a vector."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING

import torch
from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"

library = opwright.Library("trap_leaks_scratch", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op(differentiable=())
def quantile(x: Tensor, q: float = 0.5, interpolation: str = "linear") -> Tensor:
    """The q-quantile of a vector, interpolated between two elements or the nearest one; NaN if any element is NaN."""
    if x.dim() != 1 or x.shape[0] == 0 or not x.is_floating_point() or not 0 <= q <= 1:
        msg = "x must be a floating-point vector with elements, q from 0 to 1"
        raise ValueError(msg)
    if interpolation not in ("linear", "nearest"):
        msg = f"interpolation must be linear or nearest, got {interpolation}"
        raise ValueError(msg)
    order = x.double().sort().values
    at = q * (x.shape[0] - 1)
    if interpolation == "nearest":
        chosen = order[round(at)]
    else:
        low = math.floor(at)
        chosen = (
            order[low] + (order[min(low + 1, x.shape[0] - 1)] - order[low]) * (at - low) if at > low else order[low]
        )
    return torch.where(order[-1].isnan(), order[-1], chosen).to(x.dtype)


@quantile.fake
def _(x: Tensor, q: float = 0.5, interpolation: str = "linear") -> Tensor:
    return x.new_empty(())


@quantile.samples
def _(make: Make) -> Iterator[tuple[Tensor, float, str]]:
    yield make.randn(33), 0.25, "linear"
    yield make.randn(100), 0.9, "nearest"
