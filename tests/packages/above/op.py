"""An operator whose results have a size that depends on values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

library = opwright.Library("above", sources=["cpu.cpp"])


@library.op
def above(x: Tensor, threshold: float) -> tuple[Tensor, Tensor]:
    """The values of x (n,) above `threshold`, and their indices."""
    if x.dim() != 1:
        msg = f"x must have one dimension, got {x.dim()}"
        raise ValueError(msg)
    chosen = x > threshold
    return x[chosen], chosen.nonzero().flatten()


@above.fake
def _(x: Tensor, threshold: float) -> tuple[Tensor, Tensor]:
    del threshold
    count = torch.library.get_ctx().new_dynamic_size()
    return x.new_empty(count), x.new_empty(count, dtype=torch.int64)


@above.samples
def _(make: Make) -> Iterator[tuple[Tensor, float]]:
    yield make.randn(40), 0.25
