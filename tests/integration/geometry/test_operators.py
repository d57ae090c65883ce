"""The native warp compared with its reference and with PyTorch's grid_sample: sizes, dtypes, layouts, gradients."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.nn import functional
from torch.utils.benchmark import set_torch_threads

from tests.integration.geometry.conftest import FOLDER
from tests.interpreter import python

if TYPE_CHECKING:
    from opwright.loader.open import Loaded

INTERPOLATIONS = ("nearest", "bilinear", "bicubic")
PADDINGS = ("constant", "border", "reflection")
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.uint8)
# Relative to the largest value. A uint8 result may be off by one.
TOLERANCES = {torch.float32: 5e-5, torch.float64: 1e-10, torch.bfloat16: 2e-2, torch.uint8: 1.01 / 255}


@dataclass(frozen=True)
class Call:
    """A call on random pixels, with homographies near `start`."""

    count: int = 2
    channels: int = 3
    rows: int = 23
    columns: int = 170
    height: int = 19
    width: int = 161
    start: tuple[float, ...] = (0.97, 0.05, 1.37, 0.013, 0.9, 0.31, 1e-4, -1e-4, 1.0)
    several: bool = True
    interpolation: str = "bilinear"
    padding: str = "constant"
    fill: float = 0.25
    dtype: torch.dtype = torch.float32
    channels_last: bool = False
    device: str = "cpu"
    seed: int = 0

    def tensors(self) -> tuple[Tensor, Tensor]:
        """The image and the homographies."""
        generator = torch.Generator().manual_seed(self.seed)
        image = torch.rand(self.count, self.channels, self.rows, self.columns, generator=generator)
        image = (image * 255).to(self.dtype) if self.dtype == torch.uint8 else image.to(self.dtype)
        layout = torch.channels_last if self.channels_last else torch.contiguous_format
        homography = torch.tensor(self.start, dtype=torch.float64).view(3, 3)
        if self.several:
            change = torch.randn(self.count, 3, 3, generator=generator, dtype=torch.float64)
            homography = homography + change * torch.tensor([[1e-2, 1e-2, 1.0], [1e-2, 1e-2, 1.0], [1e-5, 1e-5, 1e-3]])
        return image.contiguous(memory_format=layout).to(self.device), homography.to(self.device)

    def run(self, op: Any, image: Tensor, homography: Tensor) -> Tensor:
        result: Tensor = op(image, homography, self.height, self.width, self.interpolation, self.padding, self.fill)
        return result

    def compare(self, geometry: Loaded) -> None:
        """Compare the result and both gradients with the reference in float64."""
        op, reference = geometry.ops.warp_perspective, geometry.library.ops["warp_perspective"].reference
        image, homography = self.tensors()
        result, expected = self.run(op, image, homography), self.run(reference, image, homography)
        assert result.dtype == expected.dtype
        assert result.stride() == expected.stride()
        _assert_close(result, expected, self.dtype)
        if self.dtype == torch.uint8:
            return
        gradients = []
        for call, dtype in ((op, self.dtype), (reference, torch.float64)):
            inputs = [image.to(dtype).requires_grad_(), homography.clone().requires_grad_()]
            output = self.run(call, *inputs)
            incoming = torch.linspace(-1, 1, output.numel(), device=self.device).view(output.shape).to(self.dtype)
            gradients.append(
                torch.autograd.grad(output, inputs, incoming.to(dtype), allow_unused=True, materialize_grads=True)
            )
        assert gradients[0][0].stride() == image.stride()
        _assert_close(gradients[0][0], gradients[1][0], self.dtype)
        _assert_close(gradients[0][1], gradients[1][1], self.dtype)


def _assert_close(got: Tensor, expected: Tensor, dtype: torch.dtype) -> None:
    allowed = TOLERANCES[dtype] * max(1.0, float(expected.double().abs().max())) if expected.numel() else 0.0
    torch.testing.assert_close(got.double(), expected.double(), rtol=0, atol=allowed)


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("channels_last", [False, True])
def test_every_variant_matches_the_reference(
    geometry: Loaded, interpolation: str, padding: str, dtype: torch.dtype, channels_last: bool
) -> None:
    call = Call(interpolation=interpolation, padding=padding, dtype=dtype, channels_last=channels_last)
    for channels in (1, 3, 4, 9):
        replace(call, channels=channels).compare(geometry)


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("channels_last", [False, True])
def test_gradients_of_images_with_several_bands_match_the_reference(
    geometry: Loaded, padding: str, channels_last: bool
) -> None:
    turned = (0.8, -0.6, 300.0, 0.6, 0.8, -30.0, 1e-4, 1e-4, 1.0)
    call = Call(1, 2, 800, 300, 700, 400, turned, several=False, padding=padding, channels_last=channels_last)
    call.compare(geometry)


@settings(deadline=None, max_examples=100)
@given(
    sizes=st.tuples(*[st.integers(1, 40)] * 2, st.integers(1, 20), st.integers(1, 300)),
    turn=st.tuples(*[st.floats(-2, 2)] * 4),
    shift=st.tuples(*[st.floats(-20, 20)] * 2),
    tilt=st.tuples(*[st.floats(-0.01, 0.01)] * 2),
    interpolation=st.sampled_from(INTERPOLATIONS),
    padding=st.sampled_from(PADDINGS),
    channels_last=st.booleans(),
)
def test_any_homography_matches_the_reference(
    geometry: Loaded,
    sizes: tuple[int, ...],
    turn: tuple[float, ...],
    shift: tuple[float, ...],
    tilt: tuple[float, ...],
    interpolation: str,
    padding: str,
    channels_last: bool,
) -> None:
    rows, columns, height, width = sizes
    start = (turn[0], turn[1], shift[0], turn[2], turn[3], shift[1], tilt[0], tilt[1], 1.0)
    call = Call(1, 2, rows, columns, height, width, start, several=False, interpolation=interpolation, padding=padding)
    call = replace(call, channels_last=channels_last, dtype=torch.float64)
    image, homography = call.tensors()
    result = call.run(geometry.ops.warp_perspective, image, homography)
    expected = call.run(geometry.library.ops["warp_perspective"].reference, image, homography)
    torch.testing.assert_close(result, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("padding", [("constant", "zeros"), ("border", "border"), ("reflection", "reflection")])
@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_it_matches_grid_sample_with_the_grid_of_a_homography(
    geometry: Loaded, interpolation: str, padding: tuple[str, str]
) -> None:
    call = Call(interpolation=interpolation, padding=padding[0], dtype=torch.float64, fill=0.0)
    image, homography = call.tensors()
    u, v = torch.meshgrid(
        torch.arange(float(call.width)).double(), torch.arange(float(call.height)).double(), indexing="xy"
    )
    x, y, w = (homography @ torch.stack([u, v, torch.ones_like(u)]).flatten(1)).unflatten(2, u.shape).unbind(1)
    grid = torch.stack([2 * x / w / (call.columns - 1) - 1, 2 * y / w / (call.rows - 1) - 1], dim=-1)
    expected = functional.grid_sample(image, grid, interpolation, padding[1], align_corners=True)
    result = call.run(geometry.ops.warp_perspective, image, homography)
    if interpolation == "bicubic" and padding[1] == "border":  # grid_sample moves the point onto the image
        inside = (grid.abs() <= 1).all(-1)[:, None].expand_as(result)
        result, expected = result[inside], expected[inside]
    torch.testing.assert_close(result, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.sample(2)
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_first_and_second_gradients_match_finite_differences(
    geometry: Loaded, interpolation: str, padding: str
) -> None:
    generator = torch.Generator().manual_seed(3)
    image = torch.rand(2, 2, 5, 6, generator=generator, dtype=torch.float64, requires_grad=True)
    homography = torch.tensor([[0.83, 0.11, 0.27], [-0.07, 0.91, 0.36], [0.011, -0.017, 1.0]], dtype=torch.float64)
    homography.requires_grad_()

    def warp(image: Tensor, homography: Tensor) -> Tensor:
        result: Tensor = geometry.ops.warp_perspective(image, homography, 4, 5, interpolation, padding, 0.5)
        return result

    assert gradcheck(warp, (image, homography))
    assert gradgradcheck(warp, (image, homography))


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
@pytest.mark.parametrize("padding", PADDINGS)
def test_results_do_not_depend_on_the_number_of_threads(geometry: Loaded, interpolation: str, padding: str) -> None:
    call = Call(1, 2, 1030, 90, 900, 80, several=False, interpolation=interpolation, padding=padding)
    image, homography = call.tensors()
    found = []
    for threads in (1, 2, 3):
        with set_torch_threads(threads):
            inputs = [image.clone().requires_grad_(), homography.clone().requires_grad_()]
            result = call.run(geometry.ops.warp_perspective, *inputs)
            incoming = torch.linspace(-1, 1, result.numel()).view(result.shape)
            found.append([result.detach(), *torch.autograd.grad(result, inputs, incoming)])
    for others in found[1:]:
        assert all(torch.equal(one, other) for one, other in zip(found[0], others, strict=True))


# The last row of a homography.
NOWHERE = {
    "w is zero": (0.0, 0.0, 0.0),
    "w is NaN": (0.0, 0.0, float("nan")),
    "all points coincide": (0.0, 0.0, float("inf")),
    "points are too far away": (0.0, 0.0, 1e-300),
    "points are far away, and one is at infinity": (1e-9, 0.0, 0.0),
    "w is zero in a column, and negative behind it": (-0.25, 0.0, 1.0),
}


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
@pytest.mark.parametrize("last_row", NOWHERE.values(), ids=NOWHERE)
@pytest.mark.parametrize("dtype", [torch.float64, torch.uint8], ids=str)
def test_points_at_infinity_are_filled_and_the_others_are_not_affected(
    geometry: Loaded, padding: str, interpolation: str, last_row: tuple[float, ...], dtype: torch.dtype
) -> None:
    start = (1.0, 0.1, 0.4, 0.2, 0.9, 1.3, *last_row)
    call = Call(1, 1, 9, 11, 7, 200, start, several=False, interpolation=interpolation, padding=padding, fill=7.0)
    call = replace(call, dtype=dtype)
    image, homography = call.tensors()
    result = call.run(geometry.ops.warp_perspective, image, homography)
    _assert_close(result, call.run(geometry.library.ops["warp_perspective"].reference, image, homography), dtype)
    if dtype.is_floating_point:
        inputs = [image.requires_grad_(), homography.requires_grad_()]
        gradients = torch.autograd.grad(call.run(geometry.ops.warp_perspective, *inputs).sum(), inputs)
        assert all(bool(gradient.isfinite().all()) for gradient in gradients)


@pytest.mark.parametrize("scale", [1e3, 1e9, 1e12, 1e300])
@pytest.mark.parametrize("padding", PADDINGS)
def test_huge_coordinates_do_not_overflow(geometry: Loaded, scale: float, padding: str) -> None:
    start = (scale, -scale, 0.3, 2 * scale, scale / 3, -scale, 0.0, 0.0, 1.0)
    call = Call(1, 1, 9, 11, 7, 40, start, several=False, padding=padding, fill=7.0, dtype=torch.float64)
    image, homography = call.tensors()
    result = call.run(geometry.ops.warp_perspective, image, homography)
    assert torch.equal(result, call.run(geometry.library.ops["warp_perspective"].reference, image, homography))


def test_an_image_with_any_strides_is_accepted(geometry: Loaded) -> None:
    call = Call()
    image, homography = call.tensors()
    expected = call.run(geometry.ops.warp_perspective, image, homography)
    gaps = torch.empty(2, 3, 46, 340)[:, :, ::2, ::2].copy_(image)
    turned = homography.transpose(1, 2).contiguous().transpose(1, 2)
    assert torch.equal(call.run(geometry.ops.warp_perspective, gaps, turned), expected)


def test_only_the_requested_gradients_are_computed(geometry: Loaded) -> None:
    image, homography = Call().tensors()
    grad = torch.ones(2, 3, 19, 161)
    backward = geometry.ops.warp_perspective_backward
    arguments = (grad, image, homography, 19, 161, "bilinear", "constant", 0.0)
    both = backward(*arguments, [True, True])
    assert backward(*arguments, [True, False])[1] is None
    assert backward(*arguments, [False, True])[0] is None
    assert torch.equal(backward(*arguments, [True, False])[0], both[0])
    assert torch.equal(backward(*arguments, [False, True])[1], both[1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"grad": torch.ones(2, 3, 19, 160)}, r"grad must have shape \(2, 3, 19, 161\), got \(2, 3, 19, 160\)"),
        ({"grad": torch.ones(2, 3, 19, 161).double()}, r"grad must be float32, got float64"),
        ({"image": torch.ones(2, 3, 23, 170).byte()}, r"image must be float32, float64 or bfloat16, got uint8"),
        ({"wanted": [True]}, r"wanted must have 2 flags, for image and homography, got 1"),
    ],
)
def test_a_backward_with_invalid_arguments_is_rejected(geometry: Loaded, change: dict[str, Any], message: str) -> None:
    image, homography = Call().tensors()
    arguments = {"grad": torch.ones(2, 3, 19, 161), "image": image, "homography": homography, "height": 19}
    arguments |= {"width": 161, "interpolation": "bilinear", "padding": "constant", "fill": 0.0, "wanted": [True, True]}
    with pytest.raises(RuntimeError, match=message):
        geometry.ops.warp_perspective_backward(**(arguments | change))


PRINTS_A_SUM = f"""
import hashlib, opwright, torch
torch.manual_seed(0)
op = opwright.open({str(FOLDER)!r}).ops.warp_perspective
homography = torch.tensor([[0.97, 0.05, 1.37], [0.013, 0.9, 0.31], [1e-4, -1e-4, 1.0]], dtype=torch.float64)
digest = hashlib.sha256()
for channels in (1, 3):
    image = torch.rand(1, 33, 170, channels, dtype=torch.float64).permute(0, 3, 1, 2)
    for warped in (image, image.contiguous(), (image * 255).byte()):
        for interpolation in ("nearest", "bilinear", "bicubic"):
            result = op(warped, homography, 30, 161, interpolation)
            digest.update((result.double() * 2**20).round().contiguous().numpy().tobytes())
print(digest.hexdigest())
"""


def test_all_instruction_sets_produce_the_same_results() -> None:
    found = {
        subprocess.check_output(
            [*python(), "-c", PRINTS_A_SUM], env={**os.environ, "OPWRIGHT_SIMD": instructions}, text=True
        )
        for instructions in ("baseline", "avx2", "")
    }
    assert len(found) == 1
