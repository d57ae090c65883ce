"""The operator matches OpenCV bit for bit, on photographs and on all other inputs; its reference matches it closely."""

from __future__ import annotations

import importlib.util
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import skimage.data
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import opwright

if TYPE_CHECKING:
    from types import ModuleType

    from torch import Tensor

    from opwright.loader.open import Loaded

pytestmark = pytest.mark.needs("opencv")

FOLDER = Path(__file__).parents[2] / "ops" / "warp_perspective"
DTYPES = [torch.uint8, torch.uint16, torch.int16, torch.float32, torch.float64]
INTERPOLATIONS = ["nearest", "linear", "cubic", "lanczos"]
BORDER_MODES = ["constant", "replicate", "reflect", "wrap", "reflect_101"]
PHOTOGRAPHS = ["astronaut", "camera", "coffee", "chelsea", "text", "page"]
TILT = torch.tensor([[0.9, 0.13, -3.2], [-0.08, 1.1, 2.7], [1e-3, -5e-4, 1.0]], dtype=torch.float64)


@cache
def loaded() -> Loaded:
    return opwright.open(FOLDER)


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    loaded()  # a failing build fails only once


def warp_perspective(*args: object) -> Tensor:
    result: Tensor = loaded().ops.warp_perspective(*args)
    return result


def reference(*args: object) -> Tensor:
    result: Tensor = loaded().library.ops["warp_perspective"](*args)
    return result


@cache
def bare() -> ModuleType:
    """OpenCV without PyTorch: the oracle."""
    spec = importlib.util.spec_from_file_location("bare", FOLDER / "bare" / "bare.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def oracle(*args: object) -> Tensor:
    result: Tensor = bare().warp_perspective(*args)
    return result


@cache
def photograph(name: str, dtype: torch.dtype = torch.uint8) -> Tensor:
    pixels = torch.from_numpy(getattr(skimage.data, name)())
    if dtype == torch.uint8:
        return pixels
    if dtype.is_floating_point:
        return (pixels.double() / 255).to(dtype)
    return (pixels.double() * 257 + torch.iinfo(dtype).min).to(dtype)


def assert_near_opencv(got: Tensor, from_opencv: Tensor, *numbers: float) -> None:
    """Check for a few roundings of the largest of `numbers` and 1; integers may be rounded the other way."""
    assert (got.dtype, got.shape) == (from_opencv.dtype, from_opencv.shape)
    difference = (got.double() - from_opencv.double()).abs().max().item()
    largest = max(1, *map(abs, numbers))
    assert difference <= (32 * torch.finfo(got.dtype).eps * largest if got.dtype.is_floating_point else 1)


@pytest.mark.parametrize("border_mode", BORDER_MODES)
@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_photograph_is_warped_as_by_opencv(dtype: torch.dtype, interpolation: str, border_mode: str) -> None:
    crop = photograph("astronaut", dtype)[80:128, 190:250]
    border_value = [0.25, 7.5, 300.0]
    for inverse_map, warp in ((False, TILT), (True, TILT.float())):
        args = (crop, warp, 52, 58, interpolation, inverse_map, border_mode, border_value)
        from_opencv = oracle(*args)
        assert warp_perspective(*args).equal(from_opencv)
        assert_near_opencv(reference(*args), from_opencv, *border_value)


@pytest.mark.parametrize("name", PHOTOGRAPHS)
def test_a_whole_photograph_is_warped_as_by_opencv(name: str) -> None:
    image = photograph(name)
    height, width = image.shape[:2]
    args = (image, TILT, height, width)
    assert warp_perspective(*args).equal(oracle(*args))
    assert_near_opencv(reference(*args), oracle(*args), 1)


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_the_weights_of_the_reference_are_bitwise_equal_to_opencvs(interpolation: str) -> None:
    # All pixels except one are zero, so the result in float64 is the weight of that pixel.
    for n in range(9):
        image = torch.zeros(1, 17, dtype=torch.float64)
        image[0, 4 + n] = 1
        for fraction in range(32):
            warp = torch.tensor([[1.0, 0.0, 8 + fraction / 32], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
            args = (image, warp, 1, 1, interpolation, True)
            assert reference(*args).equal(oracle(*args)), (n, fraction)


@pytest.mark.parametrize(
    ("interpolation", "channels"),
    [(name, n) for name in INTERPOLATIONS for n in (1, 2, 3, 4, 5, 17, 512) if n <= 4 or name in {"nearest", "linear"}],
)
def test_every_channel_count_of_opencv_is_supported(interpolation: str, channels: int) -> None:
    image = torch.rand(9, 7, channels)
    args = (image, TILT, 8, 10, interpolation, False, "constant", [0.5])
    assert warp_perspective(*args).equal(oracle(*args))
    assert_near_opencv(reference(*args), oracle(*args), 1)


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
@pytest.mark.parametrize("per_image", [True, False])
@pytest.mark.parametrize(("count", "side"), [(9, 40), (3, 400), (1, 30)])
def test_a_batch_equals_its_images_one_by_one(count: int, side: int, interpolation: str, per_image: bool) -> None:
    image = photograph("coffee")  # 400 x 600
    batch = torch.stack([image[:side, 20 * n :][:, :side] for n in range(count)])
    shift = torch.eye(3, dtype=torch.float64).repeat(count, 1, 1)
    shift[:, 0, 2] = torch.arange(count) * 1.7
    warp = TILT @ shift if per_image else TILT
    result = warp_perspective(batch, warp, side, side + 3, interpolation)
    assert result.shape == (count, side, side + 3, 3)
    for n in range(count):
        assert result[n].equal(oracle(batch[n], warp[n] if per_image else warp, side, side + 3, interpolation))


@pytest.mark.parametrize("warp_shape", [(3, 3), (0, 3, 3)])
def test_the_result_of_an_empty_batch_is_empty(warp_shape: tuple[int, ...]) -> None:
    image, warp = torch.zeros(0, 4, 5, 3), torch.eye(3).expand(warp_shape)
    assert warp_perspective(image, warp, 6, 7).shape == (0, 6, 7, 3)
    assert reference(image, warp, 6, 7).shape == (0, 6, 7, 3)


LAYOUTS = {
    "a crop": lambda image: image[5:40, 7:50],
    "every second row": lambda image: image[::2],
    "every second column": lambda image: image[:, ::3],
    "transposed": lambda image: image.transpose(0, 1),
    "channels first in memory": lambda image: image.permute(2, 0, 1).contiguous().permute(1, 2, 0),
    "one channel of three": lambda image: image[..., 1],
    "one row shown many times": lambda image: image[3].expand(20, -1, -1),
    "one column shown many times": lambda image: image[:, 2:3].expand(-1, 20, -1),
    "one channel shown three times": lambda image: image[..., :1].expand(-1, -1, 3),
    "windows that overlap": lambda image: image.flatten().unfold(0, 90, 30)[:20].unflatten(1, (30, 3)),
    "a single row of odd stride": lambda image: image[4:5].transpose(0, 1)[:, :, :].transpose(0, 1),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_results_do_not_depend_on_the_strides_of_the_image(layout: str) -> None:
    view = LAYOUTS[layout](photograph("chelsea")[:60, :60])
    args = (TILT, 33, 44)
    assert warp_perspective(view, *args).equal(oracle(view.contiguous(), *args))
    assert reference(view, *args).equal(reference(view.contiguous(), *args))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_results_do_not_depend_on_the_strides_of_the_batch(layout: str) -> None:
    view = LAYOUTS[layout](photograph("chelsea")[:60, :60])
    view = view[..., None] if view.dim() == 2 else view
    for batch in (torch.stack([view, view.flip(0)], 3).movedim(3, 0), view.expand(2, *view.shape)):
        args = (TILT, 33, 44)
        assert warp_perspective(batch, *args).equal(torch.stack([oracle(image.contiguous(), *args) for image in batch]))


@pytest.mark.parametrize(
    "warp",
    [TILT.T.contiguous().T, torch.stack([TILT, TILT], 2)[..., 1], torch.eye(3)[:1].expand(3, 3) + torch.eye(3)],
    ids=["transposed", "strided", "expanded"],
)
def test_results_do_not_depend_on_the_strides_of_the_warp(warp: Tensor) -> None:
    image = photograph("camera")[:50, :50]
    assert warp_perspective(image, warp, 20, 30).equal(oracle(image, warp.contiguous(), 20, 30))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, ...]:
    rows, cols, channels = draw(st.tuples(st.integers(1, 40), st.integers(1, 40), st.sampled_from([0, 1, 2, 3, 4, 7])))
    shape = (rows, cols, channels) if channels else (rows, cols)
    dtype = draw(st.sampled_from(DTYPES))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    values = torch.rand(shape, generator=generator, dtype=torch.float64)
    if not dtype.is_floating_point:
        values = values * (torch.iinfo(dtype).max - torch.iinfo(dtype).min) + torch.iinfo(dtype).min
    entries = draw(st.lists(st.floats(-1.5, 1.5), min_size=6, max_size=6))
    tilt = draw(st.lists(st.sampled_from([0.0, 1e-3, -1e-2, 0.05]), min_size=2, max_size=2))
    matrix = torch.tensor([*entries, *tilt, 1.0], dtype=torch.float64).reshape(3, 3) + torch.eye(3) / 8
    matrix[:2, 2] *= draw(st.sampled_from([1.0, 30.0, 1e6]))
    border_value = draw(st.none() | st.floats(-1e4, 1e5).map(lambda number: [number]))
    return (
        values.to(dtype),
        matrix.to(draw(st.sampled_from([torch.float32, torch.float64]))),
        draw(st.integers(1, 50)),
        draw(st.integers(1, 50)),
        draw(st.sampled_from(INTERPOLATIONS if channels <= 4 else ["nearest", "linear"])),
        True,
        draw(st.sampled_from(BORDER_MODES)),
        border_value,
    )


@settings(max_examples=150, deadline=None)
@given(cases())
def test_it_matches_opencv_for_random_shapes_values_and_options(case: tuple[Any, ...]) -> None:
    from_opencv = oracle(*case)
    assert warp_perspective(*case).equal(from_opencv)
    image, border_value = case[0], case[-1] or [0.0]
    assert_near_opencv(reference(*case), from_opencv, image.double().max().item(), *border_value)


def test_results_are_bitwise_equal_for_any_number_of_threads() -> None:
    batch = photograph("astronaut", torch.float32)[:200, :200].expand(8, -1, -1, -1)
    threads = torch.get_num_threads()
    try:
        results = []
        for count in (1, 2, 7):
            torch.set_num_threads(count)
            results += [warp_perspective(batch, TILT, 300, 310, "cubic") for _ in range(2)]
    finally:
        torch.set_num_threads(threads)
    assert all(result.equal(results[0]) for result in results)


def test_many_threads_can_call_it_concurrently() -> None:
    image = photograph("coffee")
    expected = oracle(image, TILT, 400, 600)
    batch = image[None].expand(3, -1, -1, -1)

    def call(n: int) -> bool:
        result = warp_perspective(batch, TILT, 400, 600)[n % 3] if n % 2 else warp_perspective(image, TILT, 400, 600)
        return bool(result.equal(expected))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(call, range(32)))


def test_the_image_and_the_warp_are_not_modified() -> None:
    image, warp = photograph("camera").clone(), TILT.clone()
    warp_perspective(image, warp, 64, 64)
    assert image.equal(photograph("camera"))
    assert warp.equal(TILT)


def test_the_result_does_not_share_memory_with_the_image() -> None:
    image = torch.rand(6, 6)
    result = warp_perspective(image, torch.eye(3), 6, 6)
    assert result.equal(image)
    assert result.data_ptr() != image.data_ptr()
    assert result.is_contiguous()
