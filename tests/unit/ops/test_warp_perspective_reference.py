"""The reference of warp_perspective compared with facts, without OpenCV: identities, shifts, borders, known numbers."""

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
from torch._subclasses.fake_tensor import FakeTensorMode

from opwright.spec import library_at

DTYPES = [torch.uint8, torch.uint16, torch.int16, torch.float32, torch.float64]
INTERPOLATIONS = ["nearest", "linear", "cubic", "lanczos"]
RAMP = torch.tensor([[10.0, 20.0, 30.0, 40.0]], dtype=torch.float64)


@cache
def reference() -> Any:
    return library_at(Path(__file__).parents[3] / "ops" / "warp_perspective").ops["warp_perspective"]


def shift(x: float, y: float = 0.0) -> Tensor:
    """The warp that moves an image to the right and down."""
    return torch.tensor([[1.0, 0.0, x], [0.0, 1.0, y], [0.0, 0.0, 1.0]], dtype=torch.float64)


def row(position: float, interpolation: str = "linear", border_mode: str = "constant", value: float = 0.0) -> float:
    """The value at a position on RAMP."""
    seen = reference()(RAMP, shift(position), 1, 1, interpolation, True, border_mode, [value])
    return float(seen.item())


@pytest.mark.parametrize("shape", [(7, 9), (7, 9, 3), (2, 7, 9, 3), (1, 1)])
@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_identity_returns_the_image(dtype: torch.dtype, interpolation: str, shape: tuple[int, ...]) -> None:
    image = (torch.rand(shape) * 100).to(dtype)
    result = reference()(
        image, torch.eye(3), shape[-2 if len(shape) == 2 else -3], 9 if 9 in shape else 1, interpolation
    )
    assert result.dtype == dtype
    assert result.equal(image)


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_a_shift_by_whole_pixels_moves_the_image_and_shows_the_border(interpolation: str) -> None:
    image = torch.rand(5, 6, 2)
    result = reference()(image, shift(2, 1), 5, 6, interpolation, False, "constant", [0.25, 0.75])
    assert result[1:, 2:].equal(image[:-1, :-2])
    assert result[0].equal(torch.tensor([0.25, 0.75]).expand(6, 2))
    assert result[:, :2].equal(torch.tensor([0.25, 0.75]).expand(5, 2, 2))


def test_inverse_map_reverses_the_direction() -> None:
    image = torch.rand(5, 6)
    forward = reference()(image, shift(2, 1), 5, 6)
    assert reference()(image, shift(-2, -1), 5, 6, "linear", True).equal(forward)


@given(st.floats(0, 3))
def test_linear_interpolates_at_the_nearest_32nd_of_a_pixel(position: float) -> None:
    assert row(position) == pytest.approx(10 + 10 * round(position * 32) / 32)


@pytest.mark.parametrize(("position", "seen"), [(0.5, 10), (1.5, 30), (2.5, 30), (0.49, 10), (0.51, 20), (1.0, 20)])
def test_nearest_rounds_a_half_to_the_even_pixel(position: float, seen: float) -> None:
    assert row(position, "nearest") == seen


def test_cubic_weights_four_pixels_by_keys_formula() -> None:
    # Halfway, with a = -0.75: a / 8, 1/2 - a / 8, and the same in reverse.
    outer, inner = -0.75 / 8, 0.5 + 0.75 / 8
    assert row(1.5, "cubic") == pytest.approx(outer * (10 + 40) + inner * (20 + 30))
    assert row(0.5, "cubic", value=100) == pytest.approx(outer * (100 + 30) + inner * (10 + 20))


def test_lanczos_weights_eight_pixels_by_windowed_sincs() -> None:
    pixels = torch.tensor([[3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0]], dtype=torch.float64)

    def sinc(x: float) -> float:
        return math.sin(math.pi * x) / (math.pi * x)

    weights = [sinc(3.25 - i) * sinc((3.25 - i) / 4) for i in range(8)]
    expected = sum(w * p for w, p in zip(weights, pixels[0].tolist(), strict=True)) / sum(weights)
    seen = reference()(pixels, shift(3.25), 1, 1, "lanczos", True)
    assert seen.item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("border_mode", "seen"),
    [
        ("constant", [7, 7, 7, 7, 7, 10, 20, 30, 40, 7, 7, 7, 7, 7]),
        ("replicate", [10, 10, 10, 10, 10, 10, 20, 30, 40, 40, 40, 40, 40, 40]),
        ("reflect", [40, 40, 30, 20, 10, 10, 20, 30, 40, 40, 30, 20, 10, 10]),
        ("reflect_101", [20, 30, 40, 30, 20, 10, 20, 30, 40, 30, 20, 10, 20, 30]),
        ("wrap", [40, 10, 20, 30, 40, 10, 20, 30, 40, 10, 20, 30, 40, 10]),
    ],
)
@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_the_border_modes_continue_the_image(interpolation: str, border_mode: str, seen: list[float]) -> None:
    columns = [row(x, interpolation, border_mode, 7.0) for x in range(-5, 9)]
    assert columns == seen


@pytest.mark.parametrize("border_mode", ["replicate", "reflect", "reflect_101", "wrap"])
@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_a_single_pixel_is_extended_by_itself(interpolation: str, border_mode: str) -> None:
    image = torch.full((1, 1), 5.0)
    result = reference()(image, torch.diag(torch.tensor([1.3, 0.7, 1.0])), 4, 6, interpolation, True, border_mode)
    assert torch.allclose(result, torch.tensor(5.0), rtol=1e-6)


def test_linear_fades_into_a_constant_border() -> None:
    assert row(-0.25, value=2) == pytest.approx(0.25 * 2 + 0.75 * 10)
    assert row(3.75, value=2) == pytest.approx(0.25 * 40 + 0.75 * 2)


def test_a_homography_divides_by_w() -> None:
    warp = torch.tensor([[3.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    result = reference()(RAMP, warp, 1, 4, "linear", True)
    # x' = 3x / (x + 1): 0, 1.5, 2, 2.25
    assert result[0].tolist() == [10, 25, 30, 32.5]


def test_points_with_w_zero_read_the_corner() -> None:
    warp = torch.tensor([[1.0, 0.0, 2.0], [0.0, 1.0, 0.0], [1.0, 0.0, -1.0]])
    assert reference()(RAMP, warp, 1, 2, "linear", True)[0, 1] == 10


@pytest.mark.parametrize(("dtype", "low", "high"), [(torch.uint8, 0, 255), (torch.int16, -32768, 32767)])
def test_integers_saturate_where_cubic_overshoots(dtype: torch.dtype, low: int, high: int) -> None:
    edge = torch.tensor([[low, low, low, high, high, high]]).to(dtype)
    result = reference()(edge, torch.diag(torch.tensor([1 / 8, 1, 1])), 1, 41, "cubic", True)
    assert (result.min(), result.max()) == (low, high)


@pytest.mark.parametrize(
    ("dtype", "seen"), [(torch.uint8, [1, 2, 3]), (torch.uint16, [0, 2, 2]), (torch.int16, [0, 2, 2])]
)
def test_a_half_is_rounded_up_in_uint8_and_to_even_in_other_integers(dtype: torch.dtype, seen: list[int]) -> None:
    image = torch.tensor([[0, 1, 2, 3]]).to(dtype)
    assert reference()(image, shift(0.5), 1, 3, "linear", True)[0].tolist() == seen


def test_every_image_of_a_batch_has_its_own_warp() -> None:
    batch = torch.rand(3, 5, 6, 2)
    warps = torch.stack([shift(0), shift(1, 2), shift(-1.5, 0.25)])
    result = reference()(batch, warps, 4, 7)
    for n in range(3):
        assert result[n].equal(reference()(batch[n], warps[n], 4, 7))
    assert reference()(batch, warps[1], 4, 7)[1].equal(result[1])


def test_a_border_value_is_rounded_and_saturated_to_the_dtype() -> None:
    image = torch.zeros(1, 1, 4, dtype=torch.uint8)
    result = reference()(image, shift(9), 1, 1, "nearest", False, "constant", [-3.0, 2.5, 300.0, 1e30])
    assert result.flatten().tolist() == [0, 2, 255, 255]


def test_it_runs_on_fake_tensors() -> None:
    with FakeTensorMode():
        result = reference()(torch.empty(2, 5, 6, 3, dtype=torch.uint8), torch.empty(2, 3, 3), 7, 8, "cubic")
    assert (result.shape, result.dtype) == ((2, 7, 8, 3), torch.uint8)
    assert result.is_contiguous()


def test_it_has_a_gradient_for_the_image() -> None:
    image = torch.rand(5, 6, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: reference()(x, shift(0.3, -1.2), 4, 5, "cubic"), image)


def test_results_do_not_depend_on_the_strides() -> None:
    image = torch.rand(3, 8, 9)
    for view in (image.permute(1, 2, 0), image[0].T, image[1, ::2, 1::3], image[:, 3:4].expand(3, 4, 9)):
        assert reference()(view, shift(0.5, 0.5), 4, 5).equal(reference()(view.contiguous(), shift(0.5, 0.5), 4, 5))
