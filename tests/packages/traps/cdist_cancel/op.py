"""Squared distances between two sets of points."""

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

library = opwright.Library("trap_cdist_cancel", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op(differentiable=())
def distances(x: Tensor, y: Tensor) -> Tensor:
    """The squared distance between each row of x and each row of y."""
    if x.dim() != 2 or y.dim() != 2 or x.shape[1] != y.shape[1] or x.dtype != y.dtype or not x.is_floating_point():
        msg = "x and y must be floating-point matrices with the same number of columns"
        raise ValueError(msg)
    exact = torch.cdist(x.double(), y.double(), compute_mode="donot_use_mm_for_euclid_dist")
    return exact.square().to(x.dtype).contiguous()


@distances.samples
def _(make: Make) -> Iterator[tuple[Tensor, Tensor]]:
    yield make.randn(16, 32), make.randn(9, 32)
    yield make.randn(5, 64), make.randn(33, 64)
