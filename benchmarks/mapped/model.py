"""The model that benchmarks/map_throughput.py maps: a perspective warp before ResNet-18.

opwright ship benchmarks/mapped/model.py:rectified_resnet18 --ops ops/geometry -o build/rectified
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "resnet18"))
resnet18 = importlib.import_module("resnet18")

if TYPE_CHECKING:
    from collections.abc import Iterator

SIDE = resnet18.CROP
# A view from the left: from the pixels of the result to those of the picture.
HOMOGRAPHY = ((0.9, 0.06, 8.0), (-0.04, 0.95, 10.0), (-2e-4, 1e-4, 1.0))

# `opwright ship` also reads this.
shapes = {"image": f"float32[1..16,3,{SIDE},{SIDE}]"}
images = {"image": {"resize": SIDE, "crop": (SIDE, SIDE), "mean": resnet18.MEAN, "std": resnet18.STD}}


class Rectified(nn.Module):
    """Rectifies a picture, and classifies it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("homography", torch.tensor(HOMOGRAPHY, dtype=torch.float64))
        self.classifier = resnet18.resnet18()
        self.side = SIDE

    def forward(self, image: Tensor) -> Tensor:
        """Scores (N, 1000) for images (N, 3, 224, 224), normalized."""
        warped = torch.ops.geometry.warp_perspective(image, self.homography, self.side, self.side)
        scores: Tensor = self.classifier(warped)
        return scores


def rectified_resnet18() -> Rectified:
    """The model, with the weights of examples/resnet18."""
    return Rectified().eval()


def samples() -> Iterator[tuple[Tensor]]:
    """Inputs of the model."""
    yield from resnet18.samples()
