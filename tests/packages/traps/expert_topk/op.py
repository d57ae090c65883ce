"""Chooses the experts of each token."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"

library = opwright.Library("trap_expert_topk", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def choose(scores: Tensor, k: int = 2) -> tuple[Tensor, Tensor]:
    """The k largest scores of each row and their columns; among equal scores, the leftmost is first."""
    _tokens, experts = scores.shape
    if not 1 <= k <= experts or not scores.is_floating_point():
        msg = f"k must be from 1 to {experts}, got {k}; scores floating-point"
        raise ValueError(msg)
    values, indices = scores.sort(dim=1, descending=True, stable=True)
    return values[:, :k].contiguous(), indices[:, :k].contiguous()


@choose.samples
def _(make: Make) -> Iterator[tuple[Tensor, int]]:
    yield make.randn(16, 8), 2
    yield make.rand(5, 33), 6
    yield make.randn(7, 4), 1
