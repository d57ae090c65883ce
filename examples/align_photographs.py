"""Aligns two photographs by gradient descent on the homography between them, through the warp of ops/geometry.

Warps the second photograph onto the first one, and moves the eight numbers of the homography along the gradient of the
difference, from a small copy of both up to the full size. Without files, the first photograph is one of scikit-image's,
and the second one shows it rotated, from another viewpoint, darker, and with noise. The true homography is then known,
and the script exits with 1 if the corners are more than half a pixel off.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import skimage.data
import skimage.io
import torch
from torch import Tensor
from torch.nn import functional

import opwright

EXAMPLES = """examples:
  python examples/align_photographs.py --picture aligned.jpg
  python examples/align_photographs.py left.jpg right.jpg --picture aligned.jpg
"""
# The number of steps with both photographs 16, 8, 4 and 2 times smaller, and at full size.
STEPS = (80, 60, 40, 30, 20)
RATE = 1e-2
MOST_PIXELS_OFF = 0.5
# From the second photograph's view to the first one's, in units of half its width.
UNKNOWN = ((0.93, -0.21, 0.07), (0.17, 0.97, -0.05), (0.06, -0.09, 1.0))
NOISE = 0.03


@dataclass
class Pair:
    """Two photographs of one size, (1, 3, H, W) float32 within [0, 1], and the homography between them if known."""

    first: Tensor
    second: Tensor
    known: Tensor | None = None

    @classmethod
    def made(cls) -> Pair:
        """A photograph, and the same from another viewpoint."""
        first = _photograph(torch.from_numpy(skimage.data.coffee().copy()))
        seen = warp(first, in_pixels(torch.tensor(UNKNOWN), first), padding="reflection")
        noise = torch.randn(seen.shape, generator=torch.Generator().manual_seed(0)) * NOISE
        # The second one is sampled from the first: warping it back requires the inverse.
        return cls(first, (0.7 * seen + 0.05 + noise).clamp(0, 1), torch.linalg.inv(torch.tensor(UNKNOWN)))

    @classmethod
    def read(cls, first: Path, second: Path) -> Pair:
        """Read two files. The second photograph is resized to the size of the first."""
        found = [_photograph(torch.from_numpy(skimage.io.imread(path)[..., :3].copy())) for path in (first, second)]
        return cls(found[0], functional.interpolate(found[1], found[0].shape[2:], mode="area"))


def _photograph(pixels: Tensor) -> Tensor:
    return (pixels.permute(2, 0, 1)[None] / 255).contiguous()


def warp(image: Tensor, homography: Tensor, padding: str = "constant") -> Tensor:
    """The operator, with an output of the size of the image."""
    result: Tensor = torch.ops.geometry.warp_perspective(image, homography, *image.shape[2:], padding=padding)
    return result


def in_pixels(homography: Tensor, image: Tensor) -> Tensor:
    """Convert a homography between points in units of half the width, around the centre, to the pixels of an image."""
    height, width = image.shape[2:]
    half = width / 2
    to_units = torch.tensor(
        [[1 / half, 0, (1 - width) / 2 / half], [0, 1 / half, (1 - height) / 2 / half], [0, 0, 1]], dtype=torch.float64
    )
    seen: Tensor = torch.linalg.inv(to_units) @ homography.double() @ to_units
    return seen


def difference(first: Tensor, second: Tensor, homography: Tensor) -> Tensor:
    """The mean squared difference of the photographs where they overlap, with brightness and contrast normalized."""
    seen = warp(torch.cat([second, torch.ones_like(second[:, :1])], dim=1), in_pixels(homography, second))
    # Outside the second photograph, the warped ones are zero.
    overlap = (seen[:, 3:] > 0.99).float().detach()
    normalized = []
    for image in (first, seen[:, :3]):
        mean = (image * overlap).mean(dim=(2, 3), keepdim=True) / overlap.mean()
        centred = (image - mean) * overlap
        normalized.append(centred / (centred.square().mean() / overlap.mean()).sqrt())
    return (normalized[0] - normalized[1]).square().mean() / overlap.mean()


def align(pair: Pair) -> Tensor:
    """The homography from the first photograph to the second, in units of half the width."""
    change = torch.zeros(8, requires_grad=True)
    for level, steps in enumerate(STEPS):
        smaller = 2 ** (len(STEPS) - 1 - level)
        first, second = (functional.avg_pool2d(image, smaller) for image in (pair.first, pair.second))
        optimizer = torch.optim.Adam([change], lr=RATE / 2**level)
        for _ in range(steps):
            optimizer.zero_grad()
            loss = difference(first, second, homography_of(change))
            loss.backward()
            optimizer.step()
        print(f"{first.shape[3]:5} pixels wide: a difference of {loss.item():.4f}")
    return homography_of(change.detach())


def homography_of(change: Tensor) -> Tensor:
    """The matrix with eight free numbers: the identity plus a change."""
    return torch.eye(3) + torch.cat([change, change.new_zeros(1)]).view(3, 3)


def corners_off(found: Tensor, known: Tensor, image: Tensor) -> float:
    """The largest distance of the image's corners under the two homographies, in pixels."""
    height, width = image.shape[2:]
    corners = torch.tensor([[0, width - 1, 0, width - 1], [0, 0, height - 1, height - 1], [1, 1, 1, 1]]).double()
    places = [in_pixels(homography, image) @ corners for homography in (found, known)]
    return float((places[0][:2] / places[0][2] - places[1][:2] / places[1][2]).norm(dim=0).max())


def picture_of(pair: Pair, homography: Tensor) -> Tensor:
    """Both photographs, and their difference before and after: (H, W, 3) uint8."""
    aligned = warp(pair.second, in_pixels(homography, pair.second))
    overlap = warp(torch.ones_like(pair.second), in_pixels(homography, pair.second)) > 0.99
    gain = pair.first[overlap].std() / aligned[overlap].std()
    offset = pair.first[overlap].mean() - gain * aligned[overlap].mean()
    before = (pair.first - (gain * pair.second + offset)).abs()
    after = torch.where(overlap, (pair.first - (gain * aligned + offset)).abs(), torch.zeros(()))
    rows = [torch.cat([pair.first, pair.second], dim=3), torch.cat([before, after], dim=3)]
    return (torch.cat(rows, dim=2)[0].clamp(0, 1) * 255).round().byte().permute(1, 2, 0)


def main() -> None:
    """Align the photographs, and print how accurately."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path, help="two photographs")
    parser.add_argument("--picture", type=Path, help="write both, and their difference before and after, to this file")
    asked = parser.parse_args()
    if len(asked.files) not in {0, 2}:
        parser.error(f"expected two photographs, or none, got {len(asked.files)}")
    opwright.open(Path(__file__).resolve().parents[1] / "ops" / "geometry")
    pair = Pair.read(*asked.files) if asked.files else Pair.made()
    start = time.perf_counter()
    found = align(pair)
    print(f"aligned in {time.perf_counter() - start:.1f} s, in {sum(STEPS)} steps")
    if asked.picture:
        skimage.io.imsave(asked.picture, picture_of(pair, found).numpy(), check_contrast=False)
    if pair.known is None:
        return
    before, after = (corners_off(one, pair.known, pair.first) for one in (torch.eye(3), found))
    print(f"the corners were up to {before:.1f} pixels off, and are {after:.2f}")
    if after > MOST_PIXELS_OFF:
        sys.exit(1)


if __name__ == "__main__":
    main()
