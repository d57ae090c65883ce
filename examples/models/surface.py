"""A classifier of surfaces in a warped photograph, ready to ship: an operator and a small network.

    opwright ship examples/models/surface.py:surface --ops ops/warp_perspective -o build/surface

`opencv::warp_perspective` must be registered before the model runs; `opwright ship --ops` and `opwright.open` do that.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from skimage import data
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from seeded import seed  # type: ignore[import-not-found]  # on the path since the line above

if TYPE_CHECKING:
    from collections.abc import Iterator

SURFACES = ("brick", "coins", "grass", "gravel", "page")
SIDE = 64  # side of the square that is classified, in pixels
LOOKS = 60  # training images per surface
SCORE = 5.0  # the target for the right surface; -5.0 for the others

# `opwright ship` also reads this.
shapes = {"photograph": "uint8[64..4096,64..4096,3]", "warp": "float64[3,3]"}


class Surface(nn.Module):
    """Rectifies a square of a photograph, and classifies its surface."""

    def __init__(self) -> None:
        super().__init__()
        self.side = SIDE  # TorchScript does not read globals
        layers: list[nn.Module] = []
        for channels_in, channels in ((3, 16), (16, 32), (32, 64)):
            layers += [
                nn.Conv2d(channels_in, channels, 3, stride=2, padding=1, bias=False),
                nn.BatchNorm2d(channels),
                nn.ReLU(),
            ]
        self.features = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.head = nn.Linear(64, len(SURFACES))

    def forward(self, photograph: Tensor, warp: Tensor) -> Tensor:
        """The scores of the surfaces, (1, 5), for a photograph (H, W, 3), uint8.

        `warp`, (3, 3), maps the square's pixels to those of the photograph.
        """
        scores: Tensor = self.head(self.features(self.rectified(photograph, warp)))
        return scores

    def rectified(self, photograph: Tensor, warp: Tensor) -> Tensor:
        """The square, (1, 3, 64, 64), from -1 to 1, in the dtype of the weights."""
        square = torch.ops.opencv.warp_perspective(photograph, warp, self.side, self.side, "linear", True)
        x: Tensor = square.permute(2, 0, 1).unsqueeze(0).to(self.head.weight.dtype) / 127.5 - 1
        return x


def surface() -> Surface:
    """The classifier: random convolutions from a seed, and a last layer fitted to views of the surfaces."""
    model = Surface()
    pictures = photographs()
    generator = torch.Generator().manual_seed(0)
    squares = torch.cat(
        [model.rectified(pictures[name], look(pictures[name], generator)) for name in SURFACES for _ in range(LOOKS)]
    )
    seed(model.features, squares)
    wanted = torch.eye(len(SURFACES), dtype=torch.float64).repeat_interleave(LOOKS, dim=0) * 2 - 1
    with torch.no_grad():
        features = model.features(squares).double()
        features = torch.cat([features, torch.ones(len(features), 1)], dim=1)
        solved = torch.linalg.lstsq(features, wanted * SCORE).solution.T
        model.head.weight.copy_(solved[:, :-1])
        model.head.bias.copy_(solved[:, -1])
    return model.eval()


def photographs() -> dict[str, Tensor]:
    """The surfaces, from scikit-image: each (H, W, 3), uint8."""
    return {name: torch.tensor(getattr(data, name)())[:, :, None].repeat(1, 1, 3) for name in SURFACES}


def look(photograph: Tensor, generator: torch.Generator) -> Tensor:
    """A random view of a photograph, rotated and slanted: a warp (3, 3), float64."""
    height, width, _ = photograph.shape
    across, down, turned, *slanted = (torch.rand(5, generator=generator, dtype=torch.float64) * 2 - 1).tolist()
    cosine, sine = math.cos(turned / 2), math.sin(turned / 2)
    x, y = width / 2 + across * (width / 2 - SIDE), height / 2 + down * (height / 2 - SIDE)
    to_centre = torch.tensor([[1, 0, -SIDE / 2], [0, 1, -SIDE / 2], [0, 0, 1]], dtype=torch.float64)
    turn = torch.tensor(
        [[cosine, -sine, 0], [sine, cosine, 0], [slanted[0] / 500, slanted[1] / 500, 1]], dtype=torch.float64
    )
    to_place = torch.tensor([[1, 0, x], [0, 1, y], [0, 0, 1]], dtype=torch.float64)
    return to_place @ turn @ to_centre


def samples() -> Iterator[tuple[Tensor, Tensor]]:
    """Inputs of the model: a photograph of each surface, in its original size, with a view of it."""
    generator = torch.Generator().manual_seed(1)
    for photograph in photographs().values():
        yield photograph, look(photograph, generator)
