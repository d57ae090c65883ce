"""Greedy non-maximum suppression, as a mask of the boxes to keep."""

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

library = opwright.Library("trap_nms_ties", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op(differentiable=())
def nms_mask(boxes: Tensor, scores: Tensor, threshold: float = 0.5) -> Tensor:
    """A mask of the boxes (x0, y0, x1, y1) to keep, visited by descending score; for ties, the earlier box first."""
    if boxes.dim() != 2 or boxes.shape[1] != 4 or scores.shape != boxes.shape[:1]:
        msg = f"boxes must be (n, 4) and scores (n,), got {boxes.shape} and {scores.shape}"
        raise ValueError(msg)
    if not 0 <= threshold <= 1:
        msg = f"threshold must be from 0 to 1, got {threshold}"
        raise ValueError(msg)
    if not (boxes.isfinite().all() and scores.isfinite().all()):
        msg = "boxes and scores must be finite"
        raise ValueError(msg)
    corners = boxes.double()
    sides = (corners[:, 2:] - corners[:, :2]).clamp(min=0)
    areas = sides[:, 0] * sides[:, 1]
    low = torch.maximum(corners[:, None, :2], corners[None, :, :2])
    high = torch.minimum(corners[:, None, 2:], corners[None, :, 2:])
    shared = (high - low).clamp(min=0).prod(-1)
    overlaps = shared / (areas[:, None] + areas[None, :] - shared) > threshold
    order = torch.argsort(scores, descending=True, stable=True).tolist()
    keep = torch.ones(len(order), dtype=torch.bool, device=boxes.device)
    for at, index in enumerate(order):
        if keep[index]:
            rest = order[at + 1 :]
            keep[rest] &= ~overlaps[index, rest]
    return keep


@nms_mask.fake
def _(boxes: Tensor, scores: Tensor, threshold: float = 0.5) -> Tensor:
    return boxes.new_empty(boxes.shape[0], dtype=torch.bool)


@nms_mask.samples
def _(make: Make) -> Iterator[tuple[Tensor, Tensor, float]]:
    for count, threshold in ((12, 0.5), (40, 0.3)):
        corners = make.rand(count, 2) * 8
        yield torch.cat([corners, corners + make.rand(count, 2) * 4 + 1], 1), make.rand(count), threshold
