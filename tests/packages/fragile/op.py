"""An operator that crashes at one value and waits at another, and a small model that uses it on batches of images."""

from __future__ import annotations

import torch
from torch import Tensor, nn

import opwright

library = opwright.Library("fragile", sources=["cpu.cpp"])


@library.op
def twice(x: Tensor) -> Tensor:
    """2 x, for a contiguous float32 tensor; the kernel crashes at 13, and waits 20 ms at 14."""
    return x * 2


# The name that `opwright ship` reads in addition to the model.
shapes = {"image": "float32[1..8,3,8,8]"}
images = {"image": {"resize": 8, "crop": (8, 8), "mean": (0.0, 0.0, 0.0), "std": (1.0, 1.0, 1.0)}}


class Fragile(nn.Module):
    """The mean of each colour, twice: (B, 3) for images (B, 3, 8, 8)."""

    def forward(self, image: Tensor) -> Tensor:
        """(B, 3, 8, 8) to (B, 3)."""
        twice: Tensor = torch.ops.fragile.twice(image.contiguous())
        return twice.mean([2, 3])


def model() -> Fragile:
    """Return the model, which has no weights."""
    return Fragile()
