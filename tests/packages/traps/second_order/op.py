"""A smooth clamp to (-limit, limit), with its gradient written in PyTorch."""

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

library = opwright.Library("trap_second_order")


@library.op
def soft_clamp(x: Tensor, limit: float = 1.0) -> Tensor:
    """limit * tanh(x / limit)."""
    if not 1e-3 <= limit <= 1e3:
        msg = f"limit must be from 0.001 to 1000, got {limit}"
        raise ValueError(msg)
    if not x.is_floating_point():
        msg = f"x must be floating-point, got {x.dtype}"
        raise TypeError(msg)
    return (torch.tanh(x / limit) * limit).contiguous()


@soft_clamp.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[tuple[Tensor, float]]:
    yield make.randn(16, 33), 1.0
    yield make.randn(7), 2.5


@soft_clamp.backward(saves=("x", "limit"))
def soft_clamp_backward(grad: Tensor, x: Tensor, limit: float) -> Tensor:
    saved = x.detach() if FAULTY else x  # the saved tensor needs no graph
    t = torch.tanh(saved / limit)
    return (grad * (1 - t * t)).contiguous()
