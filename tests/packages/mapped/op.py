"""An operator whose behavior depends on its input, and a small model that uses it, for the tests of maps."""

from __future__ import annotations

import torch
from torch import Tensor, nn

import opwright

library = opwright.Library("mapped", sources=["cpu.cpp"])


@library.op(differentiable=())
def act(x: Tensor) -> Tensor:
    """x + 1, for a contiguous float32 tensor of any shape; the kernel misbehaves at some values."""
    return x + 1


# The name that `opwright ship` reads in addition to the model.
shapes = {"image": "float32[1..16,3,4..64,4..64]"}
images = {"image": {"resize": 8, "crop": (8, 8), "mean": (0.5, 0.5, 0.5), "std": (0.25, 0.25, 0.25)}}


class Mapped(nn.Module):
    """Means and pixels: an output with the same sizes for every input, and one whose sizes vary."""

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        """Means (B, 3) and pixels (B, 3, H, W), for images (B, 3, H, W)."""
        pixels = torch.ops.mapped.act(image.contiguous())
        return pixels.mean([2, 3]), pixels


def model() -> Mapped:
    """Return the model, which has no weights."""
    return Mapped()
