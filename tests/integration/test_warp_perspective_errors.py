"""The kernel reports invalid arguments before it accesses memory, and the reference reports them in the same words."""

from __future__ import annotations

import math
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

import opwright

if TYPE_CHECKING:
    from torch import Tensor

    from opwright.loader.open import Loaded

pytestmark = pytest.mark.needs("opencv")

IMAGE = torch.zeros(4, 5)
BATCH = torch.zeros(2, 4, 5, 3)
PIXELS = torch.zeros(4, 5, 3, dtype=torch.uint8)
EYE = torch.eye(3)
NAN, INF = math.nan, math.inf


@cache
def loaded() -> Loaded:
    return opwright.open(Path(__file__).parents[2] / "ops" / "warp_perspective")


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    loaded()  # a failing build fails only once


def entry(row: int, col: int, value: float) -> Tensor:
    warp = torch.eye(3)
    warp[row, col] = value
    return warp


# (image, warp, height, width), keyword arguments, and the expected message.
WRONG: dict[str, tuple[tuple[Any, ...], dict[str, Any], str]] = {
    "an image of int64": (
        (IMAGE.long(), EYE, 2, 2),
        {},
        "image must be uint8, uint16, int16, float32 or float64, got int64: convert it with .to.torch.uint8.",
    ),
    "an image of float16": ((IMAGE.half(), EYE, 2, 2), {}, "image must be uint8, .*, got float16"),
    "an image of int8": ((IMAGE.to(torch.int8), EYE, 2, 2), {}, "image must be uint8, .*, got int8"),
    "an image of bool": ((IMAGE.bool(), EYE, 2, 2), {}, "image must be uint8, .*, got bool"),
    "an image of complex64": ((IMAGE.to(torch.complex64), EYE, 2, 2), {}, "image must be uint8, .*, got complex64"),
    "an image of rank 1": (
        (IMAGE[0], EYE, 2, 2),
        {},
        r"image must have shape \(H, W\), \(H, W, C\) or \(N, H, W, C\), got \(5,\)",
    ),
    "an image of rank 0": ((IMAGE[0, 0], EYE, 2, 2), {}, r"image must have shape .*, got \(\)"),
    "an image of rank 5": ((BATCH[None], EYE, 2, 2), {}, r"image must have shape .*, got \(1, 2, 4, 5, 3\)"),
    "an image without rows": (
        (IMAGE[:0], EYE, 2, 2),
        {},
        r"image must have 1 to 32766 rows and columns, got shape \(0, 5\)",
    ),
    "an image without columns": ((PIXELS[:, :0], EYE, 2, 2), {}, r"1 to 32766 rows and columns, got shape \(4, 0, 3\)"),
    "an image without channels": (
        (PIXELS[..., :0], EYE, 2, 2),
        {},
        r"image must have 1 to 512 channels in its last dimension, got shape \(4, 5, 0\)",
    ),
    "an image of too many rows": (
        (torch.zeros(1, 1).expand(32767, 1), EYE, 2, 2),
        {},
        r"1 to 32766 rows and columns, got shape \(32767, 1\)",
    ),
    "a batch of too many columns": (
        (torch.zeros(1).expand(2, 1, 40000, 3), EYE, 2, 2),
        {},
        r"1 to 32766 rows and columns, got shape \(2, 1, 40000, 3\)",
    ),
    "an image of too many channels": (
        (torch.zeros(1).expand(4, 5, 513), EYE, 2, 2),
        {},
        r"1 to 512 channels in its last dimension, got shape \(4, 5, 513\)",
    ),
    "a warp of int64": (
        (IMAGE, EYE.long(), 2, 2),
        {},
        r"warp must be float32 or float64, got int64: convert it with .to\(torch.float32\)",
    ),
    "an affine warp": (
        (IMAGE, EYE[:2], 2, 2),
        {},
        r"warp must have shape \(3, 3\), or \(N, 3, 3\) for a batch of N images, got \(2, 3\)",
    ),
    "a flat warp": ((IMAGE, EYE.flatten(), 2, 2), {}, r"warp must have shape .*, got \(9,\)"),
    "a warp of rank 4": ((BATCH, EYE[None, None], 2, 2), {}, r"warp must have shape .*, got \(1, 1, 3, 3\)"),
    "one image with several warps": (
        (IMAGE, EYE.expand(2, 3, 3), 2, 2),
        {},
        r"\(3, 3\), or one matrix for each image of a batch .*, got \(2, 3, 3\) for an image of shape \(4, 5\)",
    ),
    "a batch with too few warps": (
        (BATCH, EYE[None], 2, 2),
        {},
        r"got \(1, 3, 3\) for an image of shape \(2, 4, 5, 3\)",
    ),
    "a height of zero": ((IMAGE, EYE, 0, 2), {}, "height must be 1 to 1073741824, got 0"),
    "a negative width": ((IMAGE, EYE, 2, -3), {}, "width must be 1 to 1073741824, got -3"),
    "a height beyond int": ((IMAGE, EYE, 2**31, 2), {}, "height must be 1 to 1073741824, got 2147483648"),
    "a width beyond int": ((IMAGE, EYE, 2, 2**40), {}, "width must be 1 to 1073741824, got 1099511627776"),
    "an unknown interpolation": (
        (IMAGE, EYE, 2, 2),
        {"interpolation": "area"},
        "interpolation must be one of nearest, linear, cubic, lanczos, got 'area'",
    ),
    "an unknown border mode": (
        (IMAGE, EYE, 2, 2),
        {"border_mode": "Constant"},
        "border_mode must be one of constant, replicate, reflect, wrap, reflect_101, got 'Constant'",
    ),
    "a transparent border": (
        (IMAGE, EYE, 2, 2),
        {"border_mode": "transparent"},
        "border_mode 'transparent' is not supported: it keeps pixels of an existing output, but this output is",
    ),
    "a border value with two numbers": (
        (PIXELS, EYE, 2, 2),
        {"border_value": [1.0, 2.0]},
        "border_value must have one number for all channels, or one for each of up to 4 channels, got 2 numbers for 3",
    ),
    "an empty border value": (
        (PIXELS, EYE, 2, 2),
        {"border_value": []},
        "border_value .* got 0 numbers for 3 channels",
    ),
    "a border value with five numbers": (
        (torch.zeros(4, 5, 5), EYE, 2, 2),
        {"border_value": [1.0] * 5},
        "border_value .* got 5 numbers for 5 channels",
    ),
    "a border value of NaN in an integer image": (
        (PIXELS, EYE, 2, 2),
        {"border_value": [NAN]},
        "border_value of an integer image must be finite, got nan",
    ),
    "cubic beyond four channels": (
        (torch.zeros(4, 5, 6), EYE, 2, 2),
        {"interpolation": "cubic"},
        r"interpolation 'cubic' supports images with up to 4 channels, got 6: warp them in groups, .*split",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_an_invalid_argument_is_rejected_by_the_kernel_and_the_reference_in_the_same_words(case: str) -> None:
    args, kwargs, message = WRONG[case]
    with pytest.raises(RuntimeError, match=message) as by_reference:
        loaded().library.ops["warp_perspective"](*args, **kwargs)
    with pytest.raises(RuntimeError, match=re.escape(str(by_reference.value))):
        loaded().ops.warp_perspective(*args, **kwargs)


@pytest.mark.parametrize("value", [NAN, INF, -INF])
@pytest.mark.parametrize("inverse_map", [True, False])
def test_a_warp_that_is_not_finite_is_rejected(value: float, inverse_map: bool) -> None:
    warps = torch.stack([EYE, entry(2, 1, value)])
    with pytest.raises(RuntimeError, match="warp must be finite, got NaN or Inf in matrix 1"):
        loaded().ops.warp_perspective(BATCH, warps.double(), 2, 2, inverse_map=inverse_map)


@pytest.mark.parametrize(
    "warp",
    [
        torch.zeros(3, 3),
        torch.ones(3, 3),
        torch.arange(9.0).reshape(3, 3),
        torch.tensor([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.7, 0.8, 0.9]], dtype=torch.float64),
        torch.eye(3, dtype=torch.float64) * 1e-200,
        torch.eye(3, dtype=torch.float64) * 1e200,
    ],
    ids=["zeros", "ones", "dependent rows", "dependent up to rounding", "below the range of floats", "above it"],
)
def test_a_singular_warp_is_rejected_if_its_inverse_is_needed(warp: Tensor) -> None:
    message = "warp must have an inverse, matrix 0 is singular: pass inverse_map=True if it maps the output to"
    with pytest.raises(RuntimeError, match=message):
        loaded().ops.warp_perspective(IMAGE, warp, 2, 2)
    assert loaded().ops.warp_perspective(IMAGE, warp, 2, 2, inverse_map=True).shape == (2, 2)


def test_a_warp_that_scales_far_down_is_not_singular() -> None:
    far = torch.tensor([1e-6, 1e-6, 1.0]).diag()
    assert loaded().ops.warp_perspective(IMAGE + 1, far, 2, 2)[0, 0] == 1


def test_an_output_whose_size_overflows_is_rejected() -> None:
    image = torch.zeros(1).expand(4, 5, 512).double()
    message = r"the output must have fewer than 2\^63 bytes, got shape \(1073741824, 1073741824, 512\) of float64"
    with pytest.raises(RuntimeError, match=message):
        loaded().ops.warp_perspective(image, EYE, 2**30, 2**30)


def test_an_output_larger_than_any_memory_is_rejected() -> None:
    message = r"not enough memory for an output of shape \(1073741824, 1073741824\) of float32"
    with pytest.raises(RuntimeError, match=message):
        loaded().ops.warp_perspective(IMAGE, EYE, 2**30, 2**30)


@pytest.mark.parametrize("on_meta", ["image", "warp"])
def test_a_tensor_on_another_device_is_rejected(on_meta: str) -> None:
    image, warp = (
        tensor.to("meta") if on_meta == name else tensor for name, tensor in (("image", IMAGE), ("warp", EYE))
    )
    message = (
        "opencv::warp_perspective expected all tensors on one device, got cpu and meta: move them to the same device"
    )
    with pytest.raises(RuntimeError, match=message):
        loaded().ops.warp_perspective(image, warp, 2, 2)


def test_a_border_value_beyond_the_dtype_saturates() -> None:
    away = torch.tensor([[1.0, 0.0, 100.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    for number, shown in ((1e30, 255), (-1e30, 0), (254.5, 254)):
        assert loaded().ops.warp_perspective(PIXELS, away, 2, 2, border_value=[number]).unique().tolist() == [shown]
