"""Perspective warps of batches of images by homographies, differentiable in the images and in the homographies."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from opwright import Make, Sample

# -ffp-contract=off and -fmad=false: products and sums are fused only where the source requests it, as in the reference.
# -Wno-psabi: gcc warns about wide vectors as function arguments; all of these functions are inlined.
library = opwright.Library(
    "geometry",
    sources=["cpu/warp.cpp", "cuda.cu"],
    cflags=["-ffp-contract=off", "-Wno-psabi"],
    cuda_cflags=["-fmad=false"],
)

INTERPOLATIONS = ("nearest", "bilinear", "bicubic")
PADDINGS = ("constant", "border", "reflection")
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.uint8)
CUBIC_A = -0.75
MAX_SIDE = 2**30
# A point farther from the image's first pixel has no pixels nearby: it is `fill` with every padding.
MAX_COORDINATE = float(2**30)


class Points(NamedTuple):
    """The points of the output's pixels in the image, all (N, height, width); float64 and bool."""

    x: Tensor
    y: Tensor
    is_near: Tensor


# A uint8 pixel is rounded from float32 arithmetic, which can decide a tie differently.
@library.op(tolerance={torch.uint8: 1}, vmap=True)
def warp_perspective(
    image: Tensor,
    homography: Tensor,
    height: int,
    width: int,
    interpolation: str = "bilinear",
    padding: str = "constant",
    fill: float = 0.0,
) -> Tensor:
    """Warp images by homographies that map pixels of the output to points of the image.

    Output pixel (column u, row v) is the image at x = (h00 u + h01 v + h02) / w, y = (h10 u + h11 v + h12) / w, with
    w = h20 u + h21 v + h22, in float64, where 1 / w is a factor of both. Pixel (0, 0) is centred at x = y = 0, as in
    OpenCV, whose `warpPerspective` accepts such a matrix with WARP_INVERSE_MAP. The sign of w does not matter. A point
    with w = 0, with a coordinate that is not finite, or with one beyond 2^30 in magnitude, is `fill` with every
    padding; its gradients are zero.

    Float32, bfloat16 and uint8 pixels are interpolated in float32; uint8 results are rounded half to even and
    saturated.

    Args:
        image: (N, C, H, W), float32, float64, bfloat16 or uint8, any strides; H and W are 1 to 2^30.
        homography: (3, 3) or (1, 3, 3), for all images, or (N, 3, 3); float32 or float64, on the device of `image`.
        height: rows of the output, 1 to 2^30.
        width: columns of the output, 1 to 2^30.
        interpolation: "nearest" (half to even), "bilinear" (2 x 2 pixels) or "bicubic" (4 x 4, Keys with a = -0.75).
        padding: the pixels outside the image: "constant" (`fill`), "border" (aaa|abc|ccc) or "reflection"
            (dcb|abcd|cba, without repeating the edge).
        fill: converted to the dtype of `image`; for uint8 it must be finite, and is rounded and saturated.

    Returns:
        (N, C, height, width) with the dtype of `image`; channels last if the image is and is not also row-major, else
        row-major. It has gradients in `image` and in `homography`; "nearest" has zeros in `homography`, and a uint8
        image has none.

    Raises:
        RuntimeError: an argument has another shape, dtype or device, or an unsupported value.
    """
    _check_tensors(image, homography)
    _check_options(height, width, interpolation, padding)
    number_type = torch.float64 if image.dtype == torch.float64 else torch.float32
    outside = _converted(fill, image).to(number_type)
    points = _points(homography, height, width)
    x_taps, x_weights = _taps(points.x, interpolation, number_type)
    y_taps, y_weights = _taps(points.y, interpolation, number_type)
    pixels = image.permute(0, 2, 3, 1).to(number_type)
    number = torch.arange(image.shape[0], device=image.device)[:, None, None]
    result = torch.zeros((), dtype=number_type, device=image.device)
    for y, y_weight in zip(y_taps, y_weights, strict=True):
        row, is_row = _seen_at(y, image.shape[2], padding)
        for x, x_weight in zip(x_taps, x_weights, strict=True):
            column, is_column = _seen_at(x, image.shape[3], padding)
            seen = torch.where((is_row & is_column)[..., None], pixels[number, row, column], outside)
            result = result + (y_weight * x_weight)[..., None] * seen
    result = torch.where(points.is_near[..., None], result, outside)
    return _laid_out(result.permute(0, 3, 1, 2), image)


warp_perspective.backward()


def _points(homography: Tensor, height: int, width: int) -> Points:
    """The points of the output's pixels. The order of the operations determines on which side of a half a point is."""
    h = homography.double().reshape(-1, 3, 3).permute(1, 2, 0)[..., None, None]
    u = torch.arange(width, dtype=torch.float64, device=homography.device)
    v = torch.arange(height, dtype=torch.float64, device=homography.device)[:, None]
    x, y, w = (h[row, 0] * u + (h[row, 1] * v + h[row, 2]) for row in range(3))
    with torch.no_grad():
        # A comparison with NaN is false, and zero times infinity is NaN.
        is_near = ((x * (1 / w)).abs() <= MAX_COORDINATE) & ((y * (1 / w)).abs() <= MAX_COORDINATE)
        # Not after the division, whose derivative would be NaN.
    one_over_w = 1 / torch.where(is_near, w, 1.0)
    return Points(torch.where(is_near, x, 0.0) * one_over_w, torch.where(is_near, y, 0.0) * one_over_w, is_near)


def _taps(at: Tensor, interpolation: str, dtype: torch.dtype) -> tuple[list[Tensor], list[Tensor]]:
    """The pixels on one axis that a point is interpolated from, int64, and their weights."""
    if interpolation == "nearest":
        return [at.detach().round().to(torch.int64)], [torch.ones((), dtype=dtype, device=at.device)]
    first = at.detach().floor()
    t = (at - first).to(dtype)
    whole = first.to(torch.int64)
    if interpolation == "bilinear":
        return [whole, whole + 1], [1 - t, t]
    # Keys, "Cubic convolution interpolation for digital image processing", 1981.
    near = [((CUBIC_A + 2) * d - (CUBIC_A + 3)) * d * d + 1 for d in (t, 1 - t)]
    far = [((CUBIC_A * d - 5 * CUBIC_A) * d + 8 * CUBIC_A) * d - 4 * CUBIC_A for d in (t + 1, 2 - t)]
    return [whole - 1, whole, whole + 1, whole + 2], [far[0], near[0], near[1], far[1]]


def _seen_at(position: Tensor, size: int, padding: str) -> tuple[Tensor, Tensor]:
    """Positions on one axis, mapped into [0, size) by `padding`, and whether they are inside the image."""
    if padding == "reflection":
        period = max(2 * size - 2, 1)
        folded = position.remainder(period)
        return torch.minimum(folded, period - folded).clamp(max=size - 1), torch.ones_like(position, dtype=torch.bool)
    inside = (position >= 0) & (position < size)
    return position.clamp(0, size - 1), inside if padding == "constant" else torch.ones_like(inside)


def _converted(fill: float, image: Tensor) -> Tensor:
    """`fill` in the dtype of the image."""
    number = torch.tensor(fill, dtype=torch.float64, device=image.device)
    if image.dtype != torch.uint8:
        return number.to(image.dtype)
    _require(math.isfinite(fill), f"fill of a uint8 image must be finite, got {fill}")
    return number.round().clamp(0, 255).to(torch.uint8)


def _laid_out(result: Tensor, image: Tensor) -> Tensor:
    """The result in the image's dtype and memory format."""
    if image.dtype == torch.uint8:
        result = result.round().clamp(0, 255)
    is_channels_last = image.is_contiguous(memory_format=torch.channels_last) and not image.is_contiguous()
    layout = torch.channels_last if is_channels_last else torch.contiguous_format
    return torch.empty(result.shape, dtype=image.dtype, device=image.device, memory_format=layout).copy_(result)


def _check_tensors(image: Tensor, homography: Tensor) -> None:
    _check_dtype(image, "image", DTYPES)
    shape, matrices = tuple(image.shape), tuple(homography.shape)
    _require(len(shape) == 4, f"image must have 4 dimensions, got {len(shape)}: shape {shape}")
    _require(
        1 <= shape[2] <= MAX_SIDE and 1 <= shape[3] <= MAX_SIDE,
        f"image must have 1 to {MAX_SIDE} rows and columns, got shape {shape}",
    )
    _check_dtype(homography, "homography", (torch.float32, torch.float64))
    _require(
        homography.device == image.device,
        f"homography must be on the device of image, {image.device}, got {homography.device}: "
        "move it with .to(image.device)",
    )
    _require(
        matrices[-2:] == (3, 3) and (len(matrices) == 2 or (len(matrices) == 3 and matrices[0] in (1, shape[0]))),
        f"homography must have shape (3, 3), (1, 3, 3) or (N, 3, 3) for N images, got {matrices} "
        f"for an image of shape {shape}",
    )


def _check_options(height: int, width: int, interpolation: str, padding: str) -> None:
    for name, side in (("height", height), ("width", width)):
        _require(1 <= side <= MAX_SIDE, f"{name} must be 1 to {MAX_SIDE}, got {side}")
    _check_choice("interpolation", interpolation, INTERPOLATIONS)
    _check_choice("padding", padding, PADDINGS)


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


TILTED = ((1.2, 0.1, -2.03), (-0.1, 0.8, 1.52), (0.01, -0.02, 1.0))


def _matrix(make: Make, *rows: Sequence[float]) -> Tensor:
    """A homography in the dtype of the check."""
    return torch.tensor(rows, dtype=torch.float64).to(make.rand(1))


@warp_perspective.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Sample]:
    """Every interpolation with every padding, in every dtype and layout."""
    rows, columns = make.size(11), make.size(17)
    tilted = _matrix(make, *TILTED)
    image = make.rand(make.size(2), make.size(3), rows, columns)
    yield make.call(image, tilted, 9, 13, fill=0.5)
    yield make.call(image, tilted, 9, 13, "bicubic", "border")
    yield make.call(image, tilted, 9, 13, "nearest", "reflection")
    layered = make.rand(2, 5, 7, 3).permute(0, 3, 1, 2)
    both = torch.stack([tilted, _matrix(make, (0.5, -0.6, 3.0), (0.7, 0.6, -2.0), (0.0, 0.0, 1.0))])
    yield make.call(layered, both, 8, 40, "bilinear", "reflection")
    yield make.call(layered, both[:1], 8, 6, "bicubic", "constant", -1.0)
    yield make.call(layered, both, 8, 6, "nearest", "border")
    # The line w = 0 crosses the output, with points on both sides next to it, and points far away.
    horizon = _matrix(make, (1.0, 0.2, -3.0), (0.1, 1.0, -2.0), (-0.1, 0.02, 1.0))
    for padding in PADDINGS:
        yield make.call(make.rand(1, 1, 6, 9), horizon, 7, 21, "bilinear", padding, 2.0)
    # Wide enough for whole vectors inside the image.
    wide = make.rand(1, 2, 8, 150)
    slanted = _matrix(make, (0.97, 0.05, 1.5), (0.01, 0.9, 0.3), (1e-4, -1e-4, 1.0))
    yield make.call(wide, slanted, 8, 150, "bilinear", "constant", 1.0)
    yield make.call(wide, slanted, 8, 150, "bicubic", "reflection")
    yield make.call(wide.contiguous(memory_format=torch.channels_last), slanted, 8, 150, "bilinear", "border")
    for channels in (1, 3, 4):
        bytes_of = make.randint(0, 256, 2, 8, 150, channels, dtype=torch.uint8).permute(0, 3, 1, 2)
        yield make.call(bytes_of, slanted, 8, 150, fill=300.0)
        yield make.call(bytes_of.contiguous(), slanted, 8, 150, "bicubic", "border")
    halves = make.rand(1, 3, 8, 150, dtype=torch.bfloat16)
    yield make.call(halves, slanted, 8, 150)
    yield make.call(halves.contiguous(memory_format=torch.channels_last), slanted, 8, 150, "nearest", fill=0.5)
    yield make.call(halves, tilted, 9, 13, "bicubic", "reflection")
    photograph = make.photograph("astronaut").permute(2, 0, 1)[None]
    yield make.call(photograph, _matrix(make, (0.9, -0.2, 30.0), (0.1, 1.1, -20.0), (5e-4, -3e-4, 1.0)), 300, 400)


@warp_perspective.errors
def _(make: Make) -> Iterator[tuple[str, Sample]]:
    image, identity = make.rand(2, 3, 5, 7), torch.eye(3)
    yield "image must be float32, float64, bfloat16 or uint8", make.call(image.half(), identity, 3, 3)
    yield "image must have 4 dimensions, got 3", make.call(image[0], identity, 3, 3)
    yield "image must have 1 to 1073741824 rows", make.call(image[:, :, :0], identity, 3, 3)
    yield "image must have 1 to 1073741824 rows", make.call(image[:, :, :, :0], identity, 3, 3)
    yield "homography must be float32 or float64", make.call(image, identity.half(), 3, 3)
    yield "homography must have shape (3, 3), (1, 3, 3)", make.call(image, identity[:2], 3, 3)
    yield "homography must have shape (3, 3), (1, 3, 3)", make.call(image, identity[:, :2], 3, 3)
    yield "homography must have shape (3, 3), (1, 3, 3)", make.call(image, identity.repeat(3, 1, 1), 3, 3)
    yield "homography must have shape (3, 3), (1, 3, 3)", make.call(image, identity[None, None], 3, 3)
    yield "height must be 1 to 1073741824, got 0", make.call(image, identity, 0, 3)
    yield "width must be 1 to 1073741824, got 1073741825", make.call(image, identity, 3, MAX_SIDE + 1)
    yield "must be one of nearest, bilinear, bicubic, got 'linear'", make.call(image, identity, 3, 3, "linear")
    yield "must be one of constant, border, reflection", make.call(image, identity, 3, 3, padding="zeros")
    whole = make.randint(0, 255, 1, 1, 5, 7, dtype=torch.uint8)
    yield "fill of a uint8 image must be finite", make.call(whole, identity, 3, 3, fill=math.nan)
