"""Perspective warps of images by OpenCV, bit for bit, and what they compute in plain PyTorch."""

from __future__ import annotations

import math
from collections.abc import Sequence  # noqa: TC003 - the schema is read from the annotations
from typing import NamedTuple

import opwright
import torch
from torch import Tensor

library = opwright.Library("opencv", sources=["cpu.cpp"], packages=["opencv4"])

# OpenCV places a pixel on a grid of 1/32 (INTER_BITS = 5), keeps whole coordinates in 16 bits, and steps from 32.
SUBPIXELS = 32
SHORT = torch.iinfo(torch.int16)
INT = torch.iinfo(torch.int32)

# How many pixels on each axis an interpolation looks at.
TAPS = {"nearest": 1, "linear": 2, "cubic": 4, "lanczos": 8}
BORDER_MODES = ("constant", "replicate", "reflect", "wrap", "reflect_101")
DTYPES = (torch.uint8, torch.uint16, torch.int16, torch.float32, torch.float64)
CUBIC_A = -0.75
MAX_SIDE = 32766  # of the image: cv::remap wants less than SHRT_MAX
SCALAR_SIZE = 4  # a cv::Scalar


class Grid(NamedTuple):
    """Where the pixels of an output lie in the image: `whole + fraction / 32`, all (N, height, width) int64."""

    x: Tensor
    y: Tensor
    x_fraction: Tensor
    y_fraction: Tensor


@library.op
def warp_perspective(
    image: Tensor,
    warp: Tensor,
    height: int,
    width: int,
    interpolation: str = "linear",
    inverse_map: bool = False,  # noqa: FBT001, FBT002 - operators take flags by position
    border_mode: str = "constant",
    border_value: Sequence[float] | None = None,
) -> Tensor:
    """Looks at an image through a homography, as `cv::warpPerspective` does.

    Output pixel (x, y) is the image at ((m00 x + m01 y + m02) / w, (m10 x + m11 y + m12) / w), where
    w = m20 x + m21 y + m22 and m is the inverse of `warp`, or `warp` itself with `inverse_map`. With w = 0 it is the
    image at (0, 0). Positions are rounded to 1/32 pixel, half to even ("nearest": to whole pixels), and integer results
    are rounded and saturated.

    Args:
        image: (H, W), (H, W, C) or (N, H, W, C); uint8, uint16, int16, float32 or float64; 1 to 32766 rows and columns,
            1 to 512 channels, any strides.
        warp: (3, 3), or (N, 3, 3) with an image (N, H, W, C); float32 or float64, finite; without `inverse_map` it has
            an inverse.
        height: rows of the output, in pixels.
        width: columns of the output, in pixels.
        interpolation: "nearest", "linear" (2 x 2 pixels), "cubic" (4 x 4, a = -0.75) or "lanczos" (8 x 8).
        inverse_map: whether `warp` leads from the output to the image, instead of from the image to the output.
        border_mode: what is seen beside the image: "constant" (`border_value`), "replicate" (aaa|abc|ccc),
            "reflect" (cba|abc|cba), "reflect_101" (dcb|abcd|cba) or "wrap" (abc|abc|abc).
        border_value: one number for all channels, or one for each of up to 4 channels; zeros by default.

    Returns:
        A tensor like `image` with (H, W) replaced by (height, width), contiguous.

    Raises:
        RuntimeError: an argument is not as said above. The native kernel also looks at the numbers in `warp`, this
            reference only at shapes, dtypes and names, so that it runs where there are no numbers yet.
    """
    _check(image, warp, height, width, interpolation, border_mode, border_value)
    batch = image.reshape(*(1,) * (image.dim() < 4), *image.shape, *(1,) * (image.dim() == 2))
    rows, cols, channels = batch.shape[1:]
    pixels = batch.double()
    border = _border(border_value, channels, image)
    number = torch.arange(batch.shape[0], device=image.device)[:, None, None]
    grid = _grid(warp, height, width, 1 if interpolation == "nearest" else SUBPIXELS, inverse_map)

    taps = TAPS[interpolation]
    weights = _weights(interpolation).to(image.device)
    output = pixels.new_zeros(batch.shape[0], height, width, channels)
    for j in range(taps):
        y, y_inside = _mirror(grid.y + (j - (taps - 1) // 2), rows, border_mode)
        for i in range(taps):
            x, x_inside = _mirror(grid.x + (i - (taps - 1) // 2), cols, border_mode)
            # OpenCV multiplies the weights of the two axes in float32.
            weight = (weights[grid.y_fraction, j] * weights[grid.x_fraction, i]).double()[..., None]
            seen = torch.where((x_inside & y_inside)[..., None], pixels[number, y, x], border)
            output = output + weight * seen
    return _rounded(output, image.dtype).reshape(*image.shape[: max(image.dim() - 3, 0)], height, width, *image.shape[2:][-1:])


def _grid(warp: Tensor, height: int, width: int, steps: int, inverse_map: bool) -> Grid:  # noqa: FBT001 - private
    """Output positions to image positions, in float64 and then in whole `steps` of a pixel."""
    matrix = warp.double().reshape(-1, 3, 3)
    m = (matrix if inverse_map else _inverse(matrix)).permute(1, 2, 0)[..., None, None]
    x = torch.arange(width, dtype=torch.float64, device=warp.device)
    y = torch.arange(height, dtype=torch.float64, device=warp.device)[:, None]
    w = m[2, 0] * x + m[2, 1] * y + m[2, 2]
    scale = torch.where(w == 0, 0.0, steps / w)

    def place(row: Tensor) -> Tensor:
        position = (row[0] * x + row[1] * y + row[2]) * scale
        return position.clamp(INT.min, INT.max).round().long()

    x_steps, y_steps = place(m[0]), place(m[1])
    shift = steps.bit_length() - 1
    return Grid(
        (x_steps >> shift).clamp(SHORT.min, SHORT.max),
        (y_steps >> shift).clamp(SHORT.min, SHORT.max),
        x_steps & (steps - 1),
        y_steps & (steps - 1),
    )


def _inverse(m: Tensor) -> Tensor:
    """The inverses of (N, 3, 3) matrices, as adjugate over determinant (Cramer's rule, which OpenCV uses at 3 x 3)."""
    a, b, c = m.unbind(1)
    adjugate = torch.stack([torch.linalg.cross(b, c), torch.linalg.cross(c, a), torch.linalg.cross(a, b)], dim=2)
    return adjugate / (a * torch.linalg.cross(b, c)).sum(1)[:, None, None]


def _weights(interpolation: str) -> Tensor:
    """The weight of each tap at each 1/32 of a pixel: (32, taps) float32."""
    t = torch.arange(SUBPIXELS, dtype=torch.float32)[:, None] / SUBPIXELS
    if interpolation == "nearest":
        return torch.ones(SUBPIXELS, 1)
    if interpolation == "linear":
        return torch.cat([1 - t, t], 1)
    if interpolation == "cubic":
        # Keys, "Cubic convolution interpolation for digital image processing", 1981, with a = -0.75.
        near = [((CUBIC_A + 2) * d - (CUBIC_A + 3)) * d * d + 1 for d in (t, 1 - t)]
        first = ((CUBIC_A * (t + 1) - 5 * CUBIC_A) * (t + 1) + 8 * CUBIC_A) * (t + 1) - 4 * CUBIC_A
        return torch.cat([first, *near, 1 - first - near[0] - near[1]], 1)
    # sinc(d) sinc(d / 4) (Lanczos, a = 4), scaled so that the eight weights sum to one.
    distance = t.double() + torch.arange(3.0, -5.0, -1.0, dtype=torch.float64)
    window = torch.special.sinc(distance) * torch.special.sinc(distance / 4)
    return (window / window.sum(1, keepdim=True)).float()


def _mirror(position: Tensor, size: int, border_mode: str) -> tuple[Tensor, Tensor]:
    """Positions on one axis, brought inside [0, size) as `border_mode` says, and whether they show the image."""
    inside = (position >= 0) & (position < size)
    if border_mode == "wrap":
        return position.remainder(size), torch.ones_like(inside)
    if border_mode == "reflect":
        folded = position.remainder(2 * size)
        return torch.minimum(folded, 2 * size - 1 - folded), torch.ones_like(inside)
    if border_mode == "reflect_101":
        period = max(2 * size - 2, 1)
        folded = position.remainder(period)
        return torch.minimum(folded, period - folded).clamp(max=size - 1), torch.ones_like(inside)
    return position.clamp(0, size - 1), inside if border_mode == "constant" else torch.ones_like(inside)


def _border(value: Sequence[float] | None, channels: int, image: Tensor) -> Tensor:
    """The border value of every channel as the image's dtype holds it: (C,) float64."""
    numbers = [float(v) for v in value or (0.0,)]
    spread = torch.tensor(numbers, dtype=torch.float64, device=image.device).expand(channels)
    if image.dtype.is_floating_point:
        return spread.to(image.dtype).double()
    return _saturated(spread.round(), image.dtype)


def _rounded(values: Tensor, dtype: torch.dtype) -> Tensor:
    """Float64 values as `dtype`. OpenCV warps uint8 in fixed point, where a half goes up; else it goes to even."""
    if dtype.is_floating_point:
        return values.to(dtype)
    whole = (values + 0.5).floor() if dtype == torch.uint8 else values.round()
    return _saturated(whole, dtype).to(dtype)


def _saturated(values: Tensor, dtype: torch.dtype) -> Tensor:
    return values.clamp(torch.iinfo(dtype).min, torch.iinfo(dtype).max)
