"""Tensors and cv::Mats share memory: OpenCV accesses the tensor's own data, and vice versa."""

from __future__ import annotations

import gc
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import opwright

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

pytestmark = pytest.mark.needs("opencv")

SOURCE = r"""
#include <opwright/op.h>
#include <opwright/opencv.h>

#include <atomic>
#include <memory>

using opwright::Tensor;

std::vector<int64_t> described(const cv::Mat& mat) {
    return {reinterpret_cast<int64_t>(mat.data), static_cast<int64_t>(mat.step[0]), mat.rows, mat.cols, mat.depth(),
            mat.channels()};
}

std::vector<int64_t> to_read(const Tensor& tensor) { return described(opwright::mat_to_read(tensor)); }
std::vector<int64_t> to_write(const Tensor& tensor) { return described(opwright::mat_to_write(tensor)); }
bool fits(const Tensor& tensor) { return opwright::fits_mat(tensor); }

Tensor total(const Tensor& tensor) {
    const cv::Scalar sum = cv::sum(opwright::mat_to_read(tensor));
    return opwright::tensor_from(cv::Mat(sum).clone());
}

void fill(Tensor& tensor, double value) { opwright::mat_to_write(tensor).setTo(value); }

// A new Mat with pixels numbered from 0, or a crop of it if `margin` is positive.
std::tuple<Tensor, int64_t> fresh(int64_t rows, int64_t cols, int64_t depth, int64_t channels, int64_t margin) {
    cv::Mat mat(rows + 2 * margin, cols + 2 * margin, CV_MAKETYPE(depth, channels));
    if (!mat.empty()) {
        cv::Mat flat = mat.reshape(1, 1);
        for (int i = 0; i < flat.cols; ++i) flat.col(i).setTo(i % 100);
    }
    const cv::Mat crop = mat(cv::Rect(margin, margin, cols, rows));
    return {opwright::tensor_from(crop), reinterpret_cast<int64_t>(crop.data)};
}

Tensor empty() { return opwright::tensor_from(cv::Mat()); }

// Counts the Mats that share the pixels of the tensor that `kept` returned last.
cv::Mat witness;
Tensor kept() {
    witness = cv::Mat(4, 4, CV_8UC3);
    return opwright::tensor_from(witness);
}
int64_t sharers() { return witness.u->refcount; }

std::weak_ptr<int> owner;
Tensor owned_by_another() {
    static std::array<float, 6> pixels{0, 1, 2, 3, 4, 5};
    auto other = std::make_shared<int>(0);
    owner = other;
    return opwright::tensor_from(cv::Mat(2, 3, CV_32F, pixels.data()), other);
}
bool owner_lives() { return !owner.expired(); }

Tensor borrowed() {
    static std::array<float, 6> pixels{};
    return opwright::tensor_from(cv::Mat(2, 3, CV_32F, pixels.data()));
}

Tensor cube() {
    const std::array sizes{2, 3, 4};
    return opwright::tensor_from(cv::Mat(3, sizes.data(), CV_8U));
}

void refused_by_opencv() {
    opwright::translate_opencv_errors([] { cv::Mat(2, 2, CV_8U)(cv::Rect(0, 0, 9, 9)); });
}

OPWRIGHT_LIBRARY(opencv_header, m) {
    m.def("to_read(Tensor x) -> int[]", OPWRIGHT_FN(to_read), "CompositeExplicitAutograd");
    m.def("to_write", OPWRIGHT_FN(to_write));
    m.def("fits", OPWRIGHT_FN(fits));
    m.def("total", OPWRIGHT_FN(total));
    m.def("fill(Tensor(a!) x, float value) -> ()", OPWRIGHT_FN(fill));
    m.def("fresh", OPWRIGHT_FN(fresh));
    m.def("empty", OPWRIGHT_FN(empty));
    m.def("kept", OPWRIGHT_FN(kept));
    m.def("sharers", OPWRIGHT_FN(sharers));
    m.def("owned_by_another", OPWRIGHT_FN(owned_by_another));
    m.def("owner_lives", OPWRIGHT_FN(owner_lives));
    m.def("borrowed", OPWRIGHT_FN(borrowed));
    m.def("cube", OPWRIGHT_FN(cube));
    m.def("refused_by_opencv", OPWRIGHT_FN(refused_by_opencv));
}
"""

# The CV_ depths, in order.
DTYPES = [
    *(torch.uint8, torch.int8, torch.uint16, torch.int16, torch.int32),
    *(torch.float32, torch.float64, torch.float16),
]


@cache
def ops() -> Any:
    opwright.load_inline("opencv_header", SOURCE, packages=["opencv4"])
    return torch.ops.opencv_header


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    ops()  # so that a failing build fails only once


def expected(tensor: Tensor) -> list[int]:
    rows, cols, channels = (*tensor.shape, 1)[:3]
    row = tensor.stride(0) if rows > 1 else cols * channels
    depth = DTYPES.index(tensor.dtype)
    return [tensor.data_ptr(), row * tensor.element_size(), rows, cols, depth, channels]


@pytest.mark.parametrize("shape", [(4, 5), (4, 5, 1), (4, 5, 3), (1, 5, 2), (4, 1, 512), (1, 1, 1), (1, 1)])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_opencv_accesses_the_memory_of_a_tensor(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    tensor = torch.zeros(shape, dtype=dtype)
    assert ops().fits(tensor)
    assert ops().to_read(tensor) == expected(tensor)
    assert ops().to_write(tensor) == expected(tensor)


@pytest.mark.parametrize("shape", [(0, 5), (4, 0), (0, 0, 3), (0, 1, 2)])
def test_an_empty_tensor_is_an_empty_mat(shape: tuple[int, ...]) -> None:
    rows, cols, channels = (*shape, 1)[:3]
    assert ops().to_read(torch.zeros(shape))[2:] == [rows, cols, 5, channels]


def whole() -> Tensor:
    return torch.arange(10 * 12 * 3, dtype=torch.float32).reshape(10, 12, 3)


FITTING: dict[str, Callable[[Tensor], Tensor]] = {
    "a crop": lambda x: x[2:7, 3:9],
    "every second row": lambda x: x[::2],
    "the last row": lambda x: x[9:],
    "one channel, one column": lambda x: x[:, 4:5, 1],
    "one pixel of any stride": lambda x: x[3:4, 4:5].transpose(0, 1),
    "one transposed column": lambda x: x[:, :1].transpose(0, 1)[:, :1],
    "a permuted single channel": lambda x: x[..., 0].contiguous()[None].permute(1, 2, 0),
    "one row expanded once": lambda x: x[3].expand(1, -1, -1),
}
UNFITTING: dict[str, tuple[Callable[[Tensor], Tensor], str]] = {
    "transposed": (
        lambda x: x.transpose(0, 1),
        r"float32 with shape \(12, 10, 3\) and strides \(3, 36, 1\): the pixels of a row must be adjacent.* contiguous",
    ),
    "channels first": (lambda x: x.permute(2, 0, 1).contiguous().permute(1, 2, 0), "the channels of a pixel must be"),
    "every second column": (lambda x: x[:, ::2], "the pixels of a row must be adjacent"),
    "one channel of three": (lambda x: x[..., 1], "the pixels of a row must be adjacent"),
    "every second channel": (lambda x: x[..., ::2], "the channels of a pixel must be adjacent"),
    "one row expanded several times": (lambda x: x[:1].expand(4, -1, -1), "rows must not overlap"),
    "overlapping windows": (lambda x: x.flatten().unfold(0, 12, 6), "rows must not overlap"),
    "rank 1": (lambda x: x[0, 0], r"a Mat must be \(height, width\) or \(height, width, channels\)"),
    "rank 4": (lambda x: x[None], r"a Mat must be \(height, width\) or \(height, width, channels\)"),
    "no channels": (lambda x: x[..., :0], "a Mat has 1 to 512 channels"),
    "too many channels": (lambda x: x[:1, :1, :1].expand(2, 2, 513), "a Mat has 1 to 512 channels"),
    "too many rows": (lambda x: x[:1, :1, 0].expand(2**31, 1), "a Mat has at most 2147483647 rows and columns"),
    "int64": (lambda x: x.long(), "a Mat holds uint8, int8, uint16, int16, int32, float16, float32 or float64"),
    "bool": (lambda x: x.bool(), "no cv::Mat can share the memory of a tensor of bool"),
    "bfloat16": (lambda x: x.bfloat16(), "no cv::Mat can share the memory of a tensor of bfloat16"),
    "complex64": (lambda x: x.to(torch.complex64), "no cv::Mat can share the memory of a tensor of complex64"),
    "uint32": (lambda x: x.to(torch.uint32), "no cv::Mat can share the memory of a tensor of uint32"),
}


@pytest.mark.parametrize("view", FITTING)
def test_opencv_accesses_the_memory_of_a_view(view: str) -> None:
    tensor = FITTING[view](whole())
    assert ops().fits(tensor)
    assert ops().to_read(tensor) == expected(tensor)
    channels = tensor.shape[2:].numel()
    assert ops().total(tensor)[:channels, 0].tolist() == tensor.reshape(-1, channels).sum(0).tolist()


@pytest.mark.parametrize("view", UNFITTING)
def test_a_view_that_no_mat_can_express_is_rejected_with_the_reason(view: str) -> None:
    make, message = UNFITTING[view]
    tensor = make(whole())
    assert not ops().fits(tensor)
    for op in (ops().to_read, ops().to_write):
        with pytest.raises(RuntimeError, match=message):
            op(tensor)


def test_a_tensor_on_another_device_is_rejected() -> None:
    with pytest.raises(RuntimeError, match=r"must be on cpu for a cv::Mat to share its memory, got meta.*: move it"):
        ops().to_read(torch.zeros(2, 2, device="meta"))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(0, 6), min_size=2, max_size=3),
    st.lists(st.integers(0, 40), min_size=3, max_size=3),
    st.integers(0, 9),
)
def test_every_layout_fits_or_is_rejected_and_those_that_fit_are_read_correctly(
    shape: list[int], strides: list[int], offset: int
) -> None:
    numbers = torch.arange(1000, dtype=torch.float64)
    tensor = numbers.as_strided(shape, strides[: len(shape)], offset)
    if not ops().fits(tensor):
        with pytest.raises(RuntimeError, match=r"no cv::Mat can share .* (call contiguous\(\)|split or permute)"):
            ops().to_read(tensor)
        return
    channels = tensor.shape[2:].numel()
    if tensor.numel() == 0 or channels > 4:  # a cv::Scalar has four
        return
    assert ops().to_read(tensor)[0] == tensor.data_ptr()
    assert ops().total(tensor)[:channels, 0].tolist() == tensor.reshape(-1, channels).sum(0).tolist()


def is_lazy(tensor: Tensor) -> bool:
    return bool(torch._C._is_cow_tensor(tensor))  # type: ignore[attr-defined]  # torch's stubs omit it


def test_reading_keeps_a_copy_on_write_tensor_shared_and_writing_does_not() -> None:
    tensor = torch.ones(4, 4)
    lazy = torch._lazy_clone(tensor)
    assert ops().to_read(lazy)[0] == ops().to_read(tensor)[0]
    assert is_lazy(lazy)
    ops().fill(lazy, 7.0)
    assert not is_lazy(lazy)
    assert lazy.unique().tolist() == [7]
    assert tensor.unique().tolist() == [1]


def test_opencv_writes_only_inside_a_crop() -> None:
    tensor = torch.zeros(5, 6)
    ops().fill(tensor[1:3, 2:5], 1.0)
    assert tensor.sum() == 6
    assert tensor[1:3, 2:5].sum() == 6


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 7, 512])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_mat_becomes_a_tensor_over_the_same_pixels(dtype: torch.dtype, channels: int) -> None:
    tensor, address = ops().fresh(3, 4, DTYPES.index(dtype), channels, 0)
    assert tensor.dtype == dtype
    assert tensor.shape == ((3, 4) if channels == 1 else (3, 4, channels))
    assert tensor.data_ptr() == address
    assert tensor.is_contiguous()
    assert tensor.flatten().tolist() == [i % 100 for i in range(12 * channels)]


def test_a_crop_of_a_mat_keeps_its_row_step() -> None:
    tensor, address = ops().fresh(2, 3, 0, 3, 1)
    assert tensor.data_ptr() == address
    assert tensor.stride() == (15, 3, 1)
    assert tensor[:, 0, 0].tolist() == [18, 33]


def test_a_tensor_keeps_the_pixels_of_its_mat_alive_until_the_last_view_is_gone() -> None:
    tensor = ops().kept()
    view = tensor[1:, 1:]
    assert ops().sharers() == 2
    del tensor
    gc.collect()
    assert ops().sharers() == 2
    del view
    gc.collect()
    assert ops().sharers() == 1


def test_a_tensor_keeps_the_owner_of_borrowed_pixels_alive() -> None:
    tensor = ops().owned_by_another()
    assert tensor.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert ops().owner_lives()
    del tensor
    gc.collect()
    assert not ops().owner_lives()


def test_an_empty_mat_is_an_empty_tensor() -> None:
    tensor = ops().empty()
    assert (tensor.shape, tensor.dtype) == ((0, 0), torch.uint8)
    tensor, _ = ops().fresh(0, 3, 5, 2, 0)
    assert tensor.shape == (0, 0, 2)  # OpenCV's shape for an empty crop


@pytest.mark.parametrize(
    ("mat", "message"),
    [
        ("borrowed", r"must own its pixels .*: clone\(\) it, or .* tensor_from\(mat, owner\)"),
        ("cube", "must have rows and columns .*, got 3 dimensions: reshape it first"),
    ],
)
def test_a_mat_that_no_tensor_can_share_is_rejected(mat: str, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        getattr(ops(), mat)()


def test_an_opencv_error_becomes_one_line_with_the_failing_function() -> None:
    with pytest.raises(RuntimeError) as caught:
        ops().refused_by_opencv()
    message = str(caught.value)
    assert message.startswith("OpenCV ")
    assert ", Mat: 0 <= roi.x" in message
    assert "\n" not in message
