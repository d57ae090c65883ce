"""The fake kernel returns the wrong dtype: empty_like(x) is written out of habit, but the result is bool."""

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

library = opwright.Library("trap_fake_dtype")


@library.op
def is_above(x: Tensor, threshold: float) -> Tensor:
    return (x > threshold).contiguous()


@is_above.fake
def _(x: Tensor, threshold: float) -> Tensor:
    return x.new_empty(x.shape) if FAULTY else x.new_empty(x.shape, dtype=torch.bool)


@is_above.samples
def _(make: Make) -> Iterator[tuple[Tensor, float]]:
    yield make.randn(16, 33), 0.5
    yield make.randn(5), -1.0
