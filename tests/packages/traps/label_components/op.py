"""The connected components of a mask, filled by a recursion per pixel, so a large component overflows the stack."""

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
library = opwright.Library("trap_label_components", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op(differentiable=())
def label_components(mask: Tensor) -> Tensor:
    """1 + the first pixel in raster order to which a foreground pixel is 4-connected; 0 for the background.

    Args:
        mask: (H, W) uint8, any strides; nonzero pixels are foreground.

    Returns:
        (H, W) int64, contiguous.
    """
    if mask.dtype != torch.uint8:
        msg = f"mask must be uint8, got {mask.dtype}"
        raise TypeError(msg)
    if mask.dim() != 2:
        msg = f"mask must have shape (H, W), got {tuple(mask.shape)}"
        raise ValueError(msg)
    inside = mask != 0
    count = mask.numel()
    label = torch.where(inside, torch.arange(count, device=mask.device).view(mask.shape), count)
    while True:
        wide = torch.nn.functional.pad(label, (1, 1, 1, 1), value=count)
        near = torch.minimum(torch.minimum(wide[:-2, 1:-1], wide[2:, 1:-1]), wide[1:-1, :-2])
        near = torch.minimum(torch.minimum(near, wide[1:-1, 2:]), label)
        near = torch.where(inside, near, count)
        # A label is a pixel of the same component, whose own label may be lower.
        near = torch.cat([near.flatten(), near.new_full((1,), count)])[near]
        if torch.equal(near, label):
            return torch.where(inside, label + 1, 0).contiguous()
        label = near


@label_components.fake
def _(mask: Tensor) -> Tensor:
    if mask.dtype != torch.uint8 or mask.dim() != 2:
        msg = f"mask must be (H, W) uint8, got {tuple(mask.shape)} {mask.dtype}"
        raise ValueError(msg)
    return mask.new_empty(mask.shape, dtype=torch.int64)


@label_components.samples
def _(make: Make) -> Iterator[Sample]:
    yield make.call(make.randint(0, 2, 16, 33, dtype=torch.uint8))
    yield make.call(make.randint(0, 4, 40, 25, dtype=torch.uint8))
