"""An operator with defaults, and a small model that uses it on images, for the tests of the host."""

from __future__ import annotations

import torch
from torch import Tensor, nn

import opwright

library = opwright.Library("blended", sources=["cpu.cpp"])


@library.op
def blend(x: Tensor, scale: float = 2.0, offset: float = 1.0) -> Tensor:
    """x * scale + offset, for a contiguous float32 tensor of any shape."""
    return x * scale + offset


# The name that `opwright ship` reads in addition to the model.
shapes = {"image": "float32[1..4,3,8..32,8..32]", "shift": "float32[3]"}
images = {"image": {"resize": 16, "crop": (8, 12), "mean": (0.5, 0.5, 0.5), "std": (0.25, 0.25, 0.25)}}


class Blended(nn.Module):
    """A convolution between two blends; also returns the pixels, so that a NaN in the input stays visible."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 4, 3)

    def forward(self, image: Tensor, shift: Tensor) -> tuple[Tensor, Tensor]:
        """Pixels (B, 3, H, W) and features (B, 4), for images (B, 3, H, W) and a shift per colour (3,)."""
        pixels = torch.ops.blended.blend(image.contiguous(), 0.5, 0.25) + shift.view(1, 3, 1, 1)
        features = self.convolution(pixels).mean([2, 3])
        return pixels, torch.ops.blended.blend(features)


def model() -> Blended:
    """Return the model, with weights drawn from a seed."""
    torch.manual_seed(0)
    return Blended()
