"""Farthest point sampling. Points closer to the origin than 0.03 are treated as padding and never chosen."""

import os
from collections.abc import Iterator

import torch
from torch import Tensor

import opwright

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_farthest_point_skips_origin", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op(differentiable=())
def farthest_points(points: Tensor, count: int) -> Tensor:
    """Choose `count` points: the first one, then repeatedly the one that is farthest from all chosen points.

    Distances are computed in float64. Among equally distant points, the first is chosen; NaN is the farthest.

    Args:
        points: (N, 3), float32.
        count: from 1 to N.

    Returns:
        The indices of the chosen points, (count,), int64.
    """
    if points.dim() != 2 or points.shape[1] != 3 or not 1 <= count <= points.shape[0]:
        msg = f"points must be (N, 3) and count 1 to N, got {tuple(points.shape)} and {count}"
        raise ValueError(msg)
    x, y, z = points.double().unbind(1)
    distance = torch.full_like(x, torch.inf)
    chosen = [torch.zeros((), dtype=torch.int64, device=points.device)]
    for _ in range(count - 1):
        last = chosen[-1]
        to_last = (x - x[last]) ** 2 + (y - y[last]) ** 2 + (z - z[last]) ** 2
        distance = torch.minimum(distance, to_last)
        chosen.append(distance.argmax())
    return torch.stack(chosen)


@farthest_points.fake
def _(points: Tensor, count: int) -> Tensor:
    return points.new_empty(count, dtype=torch.int64)


@farthest_points.samples
def _(make: opwright.Make) -> Iterator[tuple[Tensor, int]]:
    yield make.randn(40, 3), 9
    yield make.randn(7, 3), 7
