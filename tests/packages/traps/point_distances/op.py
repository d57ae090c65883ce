"""Distances of points, whose native gradient divides by the distance, so coincident points get NaN."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import torch
from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_point_distances", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def point_distances(a: Tensor, b: Tensor) -> Tensor:
    """The Euclidean distances (N, M) between the points of a, (N, 3) float32, and those of b, (M, 3) float32.

    The computation is in float64. The gradient of a distance of zero is zero.
    """
    for name, points in (("a", a), ("b", b)):
        if points.dtype != torch.float32:
            msg = f"{name} must be float32, got {points.dtype}"
            raise TypeError(msg)
        if points.dim() != 2 or points.shape[1] != 3:
            msg = f"{name} must have shape (N, 3), got {tuple(points.shape)}"
            raise ValueError(msg)
    difference = a.double()[:, None] - b.double()[None]
    distances: Tensor = torch.linalg.vector_norm(difference, dim=-1)
    return distances.to(torch.float32).contiguous()


@point_distances.samples
def _(make: Make) -> Iterator[object]:
    yield make.randn(make.size(17), 3), make.randn(make.size(9), 3)
    yield make.rand(64, 3), make.rand(1, 3)


point_distances.backward()
