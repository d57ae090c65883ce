"""The photographs, and their views through a warp."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from PIL import Image
from skimage import data
from torch import Tensor

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Picture:
    """A photograph and a view of it.

    Attributes:
        name: its file name, without the suffix.
        image: (H, W) or (H, W, 3), uint8.
        corners: the positions in the image of the output's corners, as (x, y): top left, top right,
            bottom right, bottom left.
        height: rows of the output, in pixels.
        width: columns of the output, in pixels.
    """

    name: str
    image: Tensor
    corners: tuple[tuple[float, float], ...]
    height: int
    width: int

    @property
    def warp(self) -> Tensor:
        """The homography, (3, 3) float64, that maps the corners of the output to `corners`.

        Its eight unknowns solve the eight equations of the four corners.
        """
        right, bottom = float(self.width), float(self.height)
        rows, targets = [], []
        for (x, y), (u, v) in zip(((0, 0), (right, 0), (right, bottom), (0, bottom)), self.corners, strict=True):
            rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
            targets += [u, v]
        solved = torch.linalg.solve(torch.tensor(rows, dtype=torch.float64), torch.tensor(targets, dtype=torch.float64))
        return torch.cat([solved, solved.new_ones(1)]).reshape(3, 3)

    @property
    def arguments(self) -> tuple[Tensor, Tensor, int, int, str, bool]:
        """The arguments of `opencv::warp_perspective` for this view."""
        return self.image, self.warp, self.height, self.width, "linear", True


def pictures() -> tuple[Picture, Picture]:
    """The photographs: a page of text taken at an angle, and a cup of coffee."""
    text = torch.from_numpy(data.text())
    coffee = torch.from_numpy(data.coffee())
    return (
        Picture("text", text, ((155, 15), (360, 95), (260, 130), (65, 40)), 100, 600),
        Picture("coffee", coffee, ((-60, 40), (560, -30), (640, 420), (20, 380)), 400, 600),
    )


def difference(result: Tensor, expected: Tensor) -> float:
    """The largest difference between two images of the same shape and dtype."""
    if result.shape != expected.shape or result.dtype != expected.dtype:
        sys.exit(
            f"expected {expected.dtype} of shape {tuple(expected.shape)}, got {result.dtype} {tuple(result.shape)}"
        )
    return float((result.double() - expected.double()).abs().max())


def write_picture(image: Tensor, path: Path) -> Path:
    """Write an image as a PNG file."""
    Image.fromarray(image.numpy()).save(path)
    return path
