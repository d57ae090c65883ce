"""Samples an image at points, with zeros around it."""

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

library = opwright.Library("trap_bilinear_points", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def sample_points(image: Tensor, points: Tensor) -> Tensor:
    """The image at points (y, x) in pixels: bilinear between pixels, 0 outside the image and at NaN."""
    height, width = image.shape
    if points.dim() != 2 or points.shape[1] != 2 or points.dtype != image.dtype:
        msg = f"points must be (n, 2), of the image's dtype, got {points.shape}"
        raise ValueError(msg)
    if height == 0 or width == 0:
        nowhere = torch.zeros_like(points[:, 0], dtype=torch.bool)
        return torch.where(nowhere, points.sum(1) + image.sum(), 0.0)
    inside = (points > -1) & (points < torch.tensor([height, width], device=points.device))
    inside = inside.all(1)
    y, x = torch.where(inside[:, None], points, 0.0).double().unbind(1)
    top, left = y.detach().floor().long(), x.detach().floor().long()
    down, right = y - top, x - left

    def pixel(row: Tensor, column: Tensor) -> Tensor:
        known = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        at = row.clamp(0, height - 1) * width + column.clamp(0, width - 1)
        return torch.where(known, image.reshape(-1)[at], 0.0)

    result = pixel(top, left) * ((1 - down) * (1 - right)) + pixel(top, left + 1) * ((1 - down) * right)
    result = result + pixel(top + 1, left) * (down * (1 - right)) + pixel(top + 1, left + 1) * (down * right)
    return torch.where(inside, result, 0.0).to(image.dtype)


@sample_points.samples
def _(make: Make) -> Iterator[tuple[Tensor, Tensor]]:
    yield make.randn(9, 12), make.rand(20, 2) * 8
    yield make.randn(16, 16), make.rand(7, 2) * 15
