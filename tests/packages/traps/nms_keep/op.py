"""Non-maximum suppression that leaks its matrix of overlaps when it returns early because no boxes overlap."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import torch
from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright import Make, Sample

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_nms_keep", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])

FLOATS = (torch.float32, torch.float64)


@library.op(differentiable=())
def nms_keep(boxes: Tensor, threshold: float) -> Tensor:
    """A mask of boxes to keep: a box is dropped if its overlap with an earlier kept box exceeds the threshold.

    Args:
        boxes: (N, 4) of (x1, y1, x2, y2), best first; float32 or float64, any strides.
        threshold: from 0 to 1, for the intersection over union of two boxes.

    Returns:
        (N,) bool. A box whose overlap is NaN does not exceed the threshold.
    """
    _check(boxes, threshold)
    x1, y1, x2, y2 = boxes.unbind(1)
    area = (x2 - x1) * (y2 - y1)
    width = torch.minimum(x2[:, None], x2) - torch.maximum(x1[:, None], x1)
    height = torch.minimum(y2[:, None], y2) - torch.maximum(y1[:, None], y1)
    shared = width.clamp(min=0) * height.clamp(min=0)
    over = shared / (area[:, None] + area - shared) > threshold
    later = torch.arange(boxes.shape[0], device=boxes.device)
    keep = torch.ones_like(later, dtype=torch.bool)
    for i in range(boxes.shape[0]):
        keep = keep & ~(over[i] & keep[i] & (later > i))
    return keep


@nms_keep.fake
def _(boxes: Tensor, threshold: float) -> Tensor:
    _check(boxes, threshold)
    return boxes.new_empty((boxes.shape[0],), dtype=torch.bool)


def _check(boxes: Tensor, threshold: float) -> None:
    if boxes.dtype not in FLOATS:
        msg = f"boxes must be float32 or float64, got {boxes.dtype}"
        raise TypeError(msg)
    if boxes.dim() != 2 or boxes.shape[1] != 4:
        msg = f"boxes must have shape (N, 4), got {tuple(boxes.shape)}"
        raise ValueError(msg)
    if not 0 <= threshold <= 1:
        msg = f"threshold must be 0 to 1, got {threshold}"
        raise ValueError(msg)


@nms_keep.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Sample]:
    corner = make.rand(40, 2) * 10
    yield make.call(torch.cat([corner, corner + make.rand(40, 2) * 5 + 1], dim=1), 0.3)
    corner = make.rand(25, 2)
    yield make.call(torch.cat([corner, corner + 1], dim=1), 0.5)
