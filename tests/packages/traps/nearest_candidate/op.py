"""For each point, the index of the nearest candidate."""

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

library = opwright.Library("trap_nearest_candidate", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op(differentiable=())
def nearest(points: Tensor, candidates: Tensor) -> Tensor:
    """The index of the candidate nearest to each point; the first one among equally near candidates."""
    if points.dim() != 2 or candidates.dim() != 2 or points.shape[1] != 3 or candidates.shape[1] != 3:
        msg = f"points and candidates must be (n, 3), got {points.shape} and {candidates.shape}"
        raise ValueError(msg)
    if candidates.shape[0] == 0:
        msg = "candidates must not be empty"
        raise ValueError(msg)
    if not (points.isfinite().all() and candidates.isfinite().all()):
        msg = "points and candidates must be finite"
        raise ValueError(msg)
    x, y, z = (points.double()[:, None] - candidates.double()[None]).unbind(-1)
    return (x * x + y * y + z * z).argmin(1)


@nearest.fake
def _(points: Tensor, candidates: Tensor) -> Tensor:
    return points.new_empty(points.shape[0], dtype=torch.int64)


@nearest.samples
def _(make: Make) -> Iterator[tuple[Tensor, Tensor]]:
    yield make.randn(16, 3), make.randn(9, 3)
    yield make.rand(5, 3) * 100, make.rand(33, 3) * 100
