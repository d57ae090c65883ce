"""Perspective warps of images by OpenCV, with a reference in plain PyTorch that reproduces them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright import Make, Sample

library = opwright.Library("opencv", sources=["cpu.cpp"], packages=["opencv4"])

# OpenCV rounds positions to 1/32 pixel (INTER_BITS = 5) and stores whole coordinates in 16 bits.
SUBPIXELS = 32
SHORT = torch.iinfo(torch.int16)
INT = torch.iinfo(torch.int32)

# The number of pixels on each axis that an interpolation reads.
TAPS = {"nearest": 1, "linear": 2, "cubic": 4, "lanczos": 8}
BORDER_MODES = ("constant", "replicate", "reflect", "wrap", "reflect_101")
DTYPES = (torch.uint8, torch.uint16, torch.int16, torch.float32, torch.float64)
CUBIC_A = -0.75
MAX_IMAGE_SIDE = SHORT.max - 1  # cv::remap stores whole coordinates in 16 bits
MAX_OUTPUT_SIDE = 2**30
MAX_CHANNELS = 512  # CV_CN_MAX
SCALAR_CHANNELS = 4  # a cv::Scalar; also the limit of cubic and Lanczos


class Grid(NamedTuple):
    """The positions of the output's pixels in the image: `whole + fraction / 32`, all (N, height, width) int64."""

    x: Tensor
    y: Tensor
    x_fraction: Tensor
    y_fraction: Tensor


# The warp has no gradient: positions are rounded, so the result is constant in it almost everywhere.
# OpenCV interpolates uint8 in fixed point, which can differ by one grey level.
@library.op(differentiable=("image",), tolerance={torch.uint8: 1})
def warp_perspective(
    image: Tensor,
    warp: Tensor,
    height: int,
    width: int,
    interpolation: str = "linear",
    inverse_map: bool = False,
    border_mode: str = "constant",
    border_value: Sequence[float] | None = None,
) -> Tensor:
    """Warp an image by a homography, as `cv::warpPerspective` does.

    Output pixel (x, y) is the image at ((m00 x + m01 y + m02) / w, (m10 x + m11 y + m12) / w), where
    w = m20 x + m21 y + m22 and m is the inverse of `warp`, or `warp` itself with `inverse_map`. With w = 0 it is the
    image at (0, 0). Positions are rounded to 1/32 pixel, half to even ("nearest": to whole pixels), and integer results
    are rounded and saturated.

    Args:
        image: (H, W), (H, W, C) or (N, H, W, C); uint8, uint16, int16, float32 or float64; 1 to 32766 rows and columns,
            1 to 512 channels, any strides.
        warp: (3, 3), or (N, 3, 3) with an image (N, H, W, C); float32 or float64, finite; without `inverse_map` it must
            have an inverse.
        height: rows of the output, in pixels.
        width: columns of the output, in pixels.
        interpolation: "nearest", "linear" (2 x 2 pixels), and for up to 4 channels "cubic" (4 x 4, a = -0.75) and
            "lanczos" (8 x 8).
        inverse_map: whether `warp` maps the output to the image, instead of the image to the output.
        border_mode: the pixels outside the image: "constant" (`border_value`), "replicate" (aaa|abc|ccc),
            "reflect" (cba|abc|cba), "reflect_101" (dcb|abcd|cba) or "wrap" (abc|abc|abc).
        border_value: one number for all channels, or one for each of up to 4 channels; zeros by default.

    Returns:
        A tensor like `image` with (H, W) replaced by (height, width), contiguous.

    Raises:
        RuntimeError: an argument is not valid. Only the native kernel checks the values in `warp`; the reference also
            runs on fake tensors, which have none.
    """
    _check_tensors(image, warp)
    _check_options(height, width, interpolation, border_mode)
    pixels = image.double()
    if image.dim() == 2:
        pixels = pixels[..., None]
    if image.dim() < 4:
        pixels = pixels[None]
    count, rows, cols, channels = pixels.shape
    _require(
        channels <= SCALAR_CHANNELS or interpolation in {"nearest", "linear"},
        f"interpolation '{interpolation}' supports images with up to 4 channels, got {channels}: warp them in groups, "
        "such as image.split(4, dim=-1)",
    )
    border = _border(border_value, channels, image)
    number = torch.arange(count, device=image.device)[:, None, None]
    grid = _grid(warp, height, width, 1 if interpolation == "nearest" else SUBPIXELS, inverse_map)

    taps = TAPS[interpolation]
    weights = _weights(interpolation).to(image.device)
    # Float32 weights do not add up to exactly one. If a tap of "cubic" or "lanczos" is outside the image, OpenCV
    # interpolates differences from `border_value`, in every border mode, and then adds it.
    is_relative = torch.zeros((), dtype=torch.bool, device=image.device)
    if taps > TAPS["linear"]:
        is_relative = ~_are_inside(grid, rows, cols, taps)
    base = torch.where(is_relative, border, 0.0)
    outside = torch.where(is_relative, 0.0, border)
    output = base.expand(count, height, width, channels)
    for j in range(taps):
        y, y_inside = _seen_at(grid.y + (j - (taps - 1) // 2), rows, border_mode)
        for i in range(taps):
            x, x_inside = _seen_at(grid.x + (i - (taps - 1) // 2), cols, border_mode)
            # OpenCV multiplies the weights of the two axes in float32.
            weight = (weights[grid.y_fraction, j] * weights[grid.x_fraction, i]).double()[..., None]
            seen = torch.where((x_inside & y_inside)[..., None], pixels[number, y, x] - base, outside)
            output = output + weight * seen
    result = _rounded(output, image.dtype)
    if image.dim() == 2:
        return result[0, ..., 0]
    return result if image.dim() == 4 else result[0]


@warp_perspective.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Sample]:
    """Photographs, then all options on small images."""
    slanted = torch.tensor([[0.9, -0.2, 30.0], [0.1, 1.1, -20.0], [0.0005, -0.0003, 1.0]])
    yield make.call(make.photograph("astronaut"), slanted, 300, 400)
    yield make.call(make.photograph("camera"), slanted, 256, 256, "cubic", border_mode="reflect_101")
    portrait = make.photograph("astronaut")[100:200, 150:250]
    yield make.call(portrait, slanted.double(), 90, 120, "lanczos", True, "replicate")
    yield make.call(portrait, slanted, 90, 120, "nearest", border_value=[255.0, 128.0, 0.0])

    rows, columns = make.size(11), make.size(17)
    tilted = torch.tensor([[1.2, 0.1, -2.0], [-0.1, 0.8, 1.5], [0.01, -0.02, 1.0]])
    yield make.call(make.rand(rows, columns), tilted, 9, 13)
    yield make.call(make.rand(rows, columns, 1), tilted, 9, 13, border_mode="replicate")
    yield make.call(make.rand(rows, columns, 3), tilted, 9, 13, "cubic", border_mode="wrap")
    yield make.call(make.randint(-500, 500, rows, columns, dtype=torch.int16), tilted, 9, 13, border_mode="reflect")
    batch = make.size(2)
    shift = torch.eye(3).repeat(batch, 1, 1)
    shift[:, 0, 2] = torch.arange(batch) + 0.25
    yield make.call(make.rand(batch, rows, columns, 2), shift, 7, 8, inverse_map=True)
    # One matrix for all, and a border that an integer image could not have. In float64, because cubic and Lanczos
    # subtract the border from each pixel and add it again, which would lose most digits of a float32 pixel; and with
    # more channels than these two support, for the variations in float32.
    pixels = make.rand(batch, rows, columns, 5, dtype=torch.float64)
    yield make.call(pixels, tilted, 7, 8, border_value=[-4e4])

    # The largest images, a matrix that is barely invertible, and an image that OpenCV can only read after a copy.
    wide = make.randint(-500, 500, 1, MAX_IMAGE_SIDE, SCALAR_CHANNELS, dtype=torch.int16)
    # Not 1e10: PyTorch 2.13 saves a list in a graph with 10000000000, without a point, and cannot load it again.
    beyond_int = 1e10 + 0.5
    yield make.call(wide, tilted, 9, 13, "nearest", border_value=[beyond_int, -beyond_int, 2.5, 3.5])
    yield make.call(make.rand(MAX_IMAGE_SIDE, 1), _nearly_singular(17), 1, 1)
    yield make.call(make.rand(2, 3, MAX_CHANNELS).transpose(0, 1), tilted, 5, 6, border_value=[0.5])


@warp_perspective.errors
def _(make: Make) -> Iterator[tuple[str, Sample]]:
    """Errors that depend on the values of a warp, and messages that later checks would otherwise replace."""
    image, identity = make.rand(5, 7, 3), torch.eye(3)
    for at in range(9):
        broken = torch.eye(3).flatten()
        broken[at] = math.nan if at % 2 else math.inf
        yield "warp must be finite", make.call(image, broken.view(3, 3), 3, 3)
    yield "matrix 1 is singular", make.call(image.repeat(2, 1, 1, 1), torch.stack([identity, 0 * identity]), 3, 3)
    yield "matrix 0 is singular", make.call(image, _nearly_singular(16), 3, 3)
    yield "matrix 0 is singular", make.call(image, torch.arange(9.0).view(3, 3), 3, 3)
    # Not symmetric, so that an entry read from the wrong place changes the determinant.
    skewed = torch.tensor([[1.0, 2.0, 5.0], [3.0, 7.0, 4.0], [4.0, 9.0, 9.0 + 2.0**-45]], dtype=torch.float64)
    yield "matrix 0 is singular", make.call(image, skewed, 3, 3)
    yield "matrix 0 is singular", make.call(image, torch.eye(3, dtype=torch.float64) * 1e-200, 3, 3)
    yield "image must be uint8, uint16, int16", make.call(image.half(), identity, 3, 3)
    yield "warp must be float32 or float64", make.call(image, identity.half(), 3, 3)
    yield "image must have shape", make.call(make.rand(5), identity, 3, 3)
    yield "image must have shape", make.call(image[None, None], identity, 3, 3)
    yield "image must have 1 to 32766 rows", make.call(make.rand(0, 7), identity, 3, 3)
    yield "image must have 1 to 32766 rows", make.call(make.rand(5, 0), identity, 3, 3)
    yield "image must have 1 to 32766 rows", make.call(make.rand(MAX_IMAGE_SIDE + 1, 1), identity, 3, 3)
    yield "image must have 1 to 32766 rows", make.call(make.rand(1, MAX_IMAGE_SIDE + 1), identity, 3, 3)
    yield "image must have 1 to 512 channels", make.call(make.rand(5, 7, 0), identity, 3, 3)
    yield "image must have 1 to 512 channels", make.call(make.rand(2, 5, 7, MAX_CHANNELS + 1), identity, 3, 3)
    yield "warp must have shape (3, 3), or (N, 3, 3)", make.call(image, identity[:2], 3, 3)
    yield "warp must have shape (3, 3), or (N, 3, 3)", make.call(image, identity[:, :2], 3, 3)
    yield "warp must have shape (3, 3), or one matrix for each", make.call(image, identity.repeat(5, 1, 1), 3, 3)
    yield "height must be 1 to", make.call(image, identity, MAX_OUTPUT_SIDE + 1, 3)
    yield "width must be 1 to", make.call(image, identity, 3, MAX_OUTPUT_SIDE + 1)
    yield "height must be 1 to", make.call(image, identity, 0, 3)
    yield "width must be 1 to", make.call(image, identity, 3, 0)
    yield "not enough memory", make.call(image[:, :, 0], identity, MAX_OUTPUT_SIDE, MAX_OUTPUT_SIDE)
    yield "fewer than 2^63 bytes", make.call(image, identity, MAX_OUTPUT_SIDE, MAX_OUTPUT_SIDE)
    yield "'transparent' is not supported", make.call(image, identity, 3, 3, border_mode="transparent")
    yield "must be one of nearest, linear", make.call(image, identity, 3, 3, "area")
    yield "border_value must have one number", make.call(image, identity, 3, 3, border_value=[1.0, 2.0])
    five = make.rand(5, 7, 5)
    yield "border_value must have one number", make.call(image[:, :, 0], identity, 3, 3, border_value=[1.0, 2.0])
    yield "border_value must have one number", make.call(five, identity, 3, 3, border_value=[1.0] * 5)
    yield "supports images with up to 4 channels", make.call(five, identity, 3, 3, "cubic")
    whole = make.randint(0, 9, 5, 7, dtype=torch.int16)
    yield "border_value of an integer image", make.call(whole, identity, 3, 3, border_value=[math.nan])


def _nearly_singular(units: int) -> Tensor:
    """A matrix with a determinant of `units` * 2^-52; up to 16, that is within the rounding errors of its products."""
    return torch.tensor([[1.0, 1.0, 0.0], [1.0, 1.0 + units * 2.0**-52, 0.0], [0.0, 0.0, 1.0]], dtype=torch.float64)


def _grid(warp: Tensor, height: int, width: int, steps: int, inverse_map: bool) -> Grid:
    """Output positions to image positions, in float64 and then in whole `steps` of a pixel."""
    matrix = warp.double().reshape(-1, 3, 3)
    m = (matrix if inverse_map else _inverse(matrix)).permute(1, 2, 0)[..., None, None]
    x = torch.arange(width, dtype=torch.float64, device=warp.device)
    y = torch.arange(height, dtype=torch.float64, device=warp.device)[:, None]
    # OpenCV adds from the left edge of blocks of 1024 pixels, which determines how positions between steps are rounded.
    block = torch.sym_min(width, 1024 // torch.sym_min(16, height))
    left = x - x.remainder(block)

    def along(row: Tensor) -> Tensor:
        return (row[0] * left + row[1] * y + row[2]) + row[0] * (x - left)

    w = along(m[2])
    scale = torch.where(w == 0, 0.0, steps / w)

    def place(row: Tensor) -> Tensor:
        return (along(row) * scale).clamp(INT.min, INT.max).round().to(torch.int64)

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
    columns = [torch.linalg.cross(b, c), torch.linalg.cross(c, a), torch.linalg.cross(a, b)]
    determinant = (a * columns[0]).sum(1)[:, None, None]
    return torch.stack(columns, dim=2).mul(1 / determinant)


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
    # Lanczos, a = 4: sinc(d) sinc(d / 4), which is proportional to +-sin(pi d / 4) / d^2 for the taps of one position.
    # OpenCV rounds that to float32 and then scales the eight weights to a sum of one, in float32.
    distance = t.double() + torch.arange(3.0, -5.0, -1.0, dtype=torch.float64)
    angle = distance * (math.pi / 4)
    signs = torch.tensor([1.0, -1.0] * 4, dtype=torch.float64)
    taps = (signs * angle.sin() / angle.square()).float()
    total = sum(taps.unbind(1), start=torch.zeros(SUBPIXELS))  # one after the other, as OpenCV does
    at_pixel = (distance == 0).float()
    return torch.where(t == 0, at_pixel, taps * total.reciprocal()[:, None])


def _are_inside(grid: Grid, rows: int, cols: int, taps: int) -> Tensor:
    """Whether all taps of a position are pixels of the image: (N, height, width, 1)."""
    before, after = (taps - 1) // 2, taps // 2
    x_inside = (grid.x >= before) & (grid.x < cols - after)
    y_inside = (grid.y >= before) & (grid.y < rows - after)
    return (x_inside & y_inside)[..., None]


def _seen_at(position: Tensor, size: int, border_mode: str) -> tuple[Tensor, Tensor]:
    """Positions on one axis, mapped into [0, size) by `border_mode`, and whether they are inside the image."""
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
    """The border value of each channel, rounded to the image's dtype: (C,) float64."""
    numbers = [0.0] if value is None else list(value)
    _require(
        len(numbers) == 1 or len(numbers) == channels <= SCALAR_CHANNELS,
        "border_value must have one number for all channels, or one for each of up to 4 channels, got "
        f"{len(numbers)} numbers for {channels} channels",
    )
    spread = torch.tensor(numbers, dtype=torch.float64, device=image.device).expand(channels)
    if image.dtype.is_floating_point:
        return spread.to(image.dtype).double()
    for number in numbers:
        _require(math.isfinite(number), f"border_value of an integer image must be finite, got {number}")
    return _saturated(spread.round(), image.dtype)


def _rounded(values: Tensor, dtype: torch.dtype) -> Tensor:
    """Float64 values as `dtype`. OpenCV warps uint8 in fixed point, which rounds half up; otherwise half to even."""
    if dtype.is_floating_point:
        return values.to(dtype)
    whole = (values + 0.5).floor() if dtype == torch.uint8 else values.round()
    return _saturated(whole, dtype).to(dtype)


def _saturated(values: Tensor, dtype: torch.dtype) -> Tensor:
    return values.clamp(torch.iinfo(dtype).min, torch.iinfo(dtype).max)


def _check_tensors(image: Tensor, warp: Tensor) -> None:
    _check_dtype(image, "image", DTYPES)
    shape = tuple(image.shape)
    _require(len(shape) in {2, 3, 4}, f"image must have shape (H, W), (H, W, C) or (N, H, W, C), got {shape}")
    is_batch = len(shape) == 4
    rows, cols, channels = (*shape[is_batch:], 1)[:3]
    _require(
        1 <= rows <= MAX_IMAGE_SIDE and 1 <= cols <= MAX_IMAGE_SIDE,
        f"image must have 1 to {MAX_IMAGE_SIDE} rows and columns, got shape {shape}",
    )
    _require(
        1 <= channels <= MAX_CHANNELS,
        f"image must have 1 to {MAX_CHANNELS} channels in its last dimension, got shape {shape}",
    )
    _check_dtype(warp, "warp", (torch.float32, torch.float64))
    warp_shape = tuple(warp.shape)
    _require(
        len(warp_shape) in {2, 3} and warp_shape[-2:] == (3, 3),
        f"warp must have shape (3, 3), or (N, 3, 3) for a batch of N images, got {warp_shape}",
    )
    _require(
        len(warp_shape) == 2 or (is_batch and warp_shape[0] == shape[0]),
        "warp must have shape (3, 3), or one matrix for each image of a batch (N, H, W, C), got "
        f"{warp_shape} for an image of shape {shape}",
    )


def _check_options(height: int, width: int, interpolation: str, border_mode: str) -> None:
    for name, side in (("height", height), ("width", width)):
        _require(1 <= side <= MAX_OUTPUT_SIDE, f"{name} must be 1 to {MAX_OUTPUT_SIDE}, got {side}")
    _check_choice("interpolation", interpolation, TAPS)
    _require(
        border_mode != "transparent",
        "border_mode 'transparent' is not supported: it keeps pixels of an existing output, but this output is newly "
        "allocated: use 'constant'",
    )
    _check_choice("border_mode", border_mode, BORDER_MODES)


def _check_dtype(tensor: Tensor, name: str, wanted: Sequence[torch.dtype]) -> None:
    *most, last = (str(dtype).removeprefix("torch.") for dtype in wanted)
    got = str(tensor.dtype).removeprefix("torch.")
    _require(
        tensor.dtype in wanted,
        f"{name} must be {', '.join(most)} or {last}, got {got}: convert it with .to(torch.{most[0]})",
    )


def _check_choice(argument: str, value: str, choices: Iterable[str]) -> None:
    _require(value in choices, f"{argument} must be one of {', '.join(choices)}, got '{value}'")


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise RuntimeError(message)
