"""The reference of the warp in ops/geometry compared with facts: identities, shifts, borders, known numbers."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from opwright.spec import library_at

INTERPOLATIONS = ("nearest", "bilinear", "bicubic")
PADDINGS = ("constant", "border", "reflection")
RAMP = torch.tensor([[[[10.0, 20.0, 30.0, 40.0]]]], dtype=torch.float64)


@cache
def reference() -> Any:
    return library_at(Path(__file__).parents[3] / "ops" / "geometry").ops["warp_perspective"]


def shift(x: float, y: float = 0.0, w: float = 1.0) -> Tensor:
    """The homography that reads an image further to the right and further down."""
    return torch.tensor([[w, 0.0, x * w], [0.0, w, y * w], [0.0, 0.0, w]], dtype=torch.float64)


def seen(x: float, interpolation: str = "bilinear", padding: str = "constant", fill: float = 0.0) -> float:
    """The value at a position on RAMP."""
    return float(reference()(RAMP, shift(x), 1, 1, interpolation, padding, fill).item())


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.uint8], ids=str)
def test_the_identity_changes_nothing(interpolation: str, padding: str, dtype: torch.dtype) -> None:
    image = (torch.rand(2, 3, 5, 7) * 255).to(dtype)
    assert torch.equal(reference()(image, torch.eye(3), 5, 7, interpolation, padding), image)


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
@pytest.mark.parametrize("padding", PADDINGS)
def test_a_homography_and_its_negative_are_equivalent(interpolation: str, padding: str) -> None:
    image = torch.rand(1, 2, 8, 9, dtype=torch.float64)
    homography = torch.tensor([[0.9, 0.2, 1.1], [-0.1, 1.1, 0.4], [0.02, 0.01, 1.0]], dtype=torch.float64)
    found = [reference()(image, h, 7, 8, interpolation, padding) for h in (homography, -homography)]
    assert torch.equal(*found)


def test_bilinear_is_a_weighted_mean_of_two_pixels() -> None:
    assert seen(1.25) == 22.5
    assert seen(-0.75) == 2.5
    assert seen(-0.75, fill=100.0) == 77.5
    assert seen(3.5, padding="border") == 40.0


def test_nearest_rounds_half_to_even() -> None:
    assert [seen(x, "nearest") for x in (0.5, 1.5, 2.49, 2.5)] == [10.0, 30.0, 30.0, 30.0]
    assert seen(-0.51, "nearest", fill=7.0) == 7.0


def test_bicubic_interpolation_reproduces_a_line() -> None:
    assert seen(1.5, "bicubic") == pytest.approx(25.0)
    # In general the result is not between its pixels.
    bright = torch.tensor([[[[0.0, 1.0, 1.0, 0.0]]]], dtype=torch.float64)
    assert reference()(bright, shift(1.5), 1, 1, "bicubic", "border").item() == pytest.approx(1.1875)


def test_padding_matches_its_diagram() -> None:
    """aaa|abc|ccc, and dcb|abcd|cba."""
    assert [seen(x, "nearest", "border") for x in (-3, -1, 0, 3, 4, 6)] == [10, 10, 10, 40, 40, 40]
    assert [seen(x, "nearest", "reflection") for x in (-3, -2, -1, 0, 3, 4, 5, 6, 7)] == [
        *(40, 30, 20, 10, 40),
        *(30, 20, 10, 20),
    ]


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("w", [0.0, math.nan, math.inf, 1e-320])
def test_a_point_at_infinity_is_filled_and_has_no_gradient(padding: str, w: float) -> None:
    homography = torch.tensor([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5], [0.0, 0.0, w]], dtype=torch.float64)
    if math.isinf(w):  # otherwise all points are (0, 0), which is inside the image
        homography[0, 2] = math.inf
    homography.requires_grad_()
    image = torch.rand(1, 1, 4, 5, dtype=torch.float64, requires_grad=True)
    result = reference()(image, homography, 3, 3, "bilinear", padding, 7.0)
    assert bool((result == 7).all())
    to_image, to_homography = torch.autograd.grad(result.sum(), (image, homography))
    assert not to_image.any()
    assert not to_homography.any()


@given(st.floats(-5, 300))
def test_a_byte_is_rounded_half_to_even_and_saturated(fill: float) -> None:
    image = torch.zeros(1, 1, 2, 2, dtype=torch.uint8)
    result = reference()(image, shift(50.0), 1, 1, fill=fill)
    assert result.item() == min(max(round(fill), 0), 255)


def test_the_result_has_the_layout_of_the_image() -> None:
    image = torch.rand(2, 3, 5, 7)
    last = image.contiguous(memory_format=torch.channels_last)
    results = [reference()(one, torch.eye(3), 4, 6) for one in (image, last)]
    assert results[0].is_contiguous()
    assert results[1].is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(*results)


@pytest.mark.parametrize("shape", [(3, 3), (1, 3, 3), (2, 3, 3)])
def test_a_single_homography_applies_to_all_images(shape: tuple[int, ...]) -> None:
    image = torch.rand(2, 1, 5, 7)
    homography = shift(0.5).expand(shape)
    result = reference()(image, homography, 5, 6, padding="border")
    torch.testing.assert_close(result, (image[..., :-1] + image[..., 1:]) / 2)
