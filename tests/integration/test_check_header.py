"""The messages of `opwright/check.h` for arguments that a kernel does not accept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SOURCE = """
#include <opwright/check.h>
#include <opwright/op.h>
using namespace opwright;

void check_one(const Tensor& x, std::string_view what) {
    if (what == "device") check::device(x, "image", DeviceType::CPU);
    if (what == "cuda") check::device(x, "image", DeviceType::CUDA);
    if (what == "dtypes") check::dtype(x, "image", {ScalarType::Byte, ScalarType::Float, ScalarType::Double});
    if (what == "dtype") check::dtype(x, "image", ScalarType::Half);
    if (what == "ranks") check::rank(x, "image", {2, 3});
    if (what == "rank") check::rank(x, "image", 1);
    if (what == "sizes") check::sizes(x, "warp", {check::any, 3});
    if (what == "contiguous") check::contiguous(x, "image");
    if (what == "finite") check::finite(x, "warp");
}
void same_device(const Tensor& image, const Tensor& warp) { check::same_device(warp, "warp", image, "image"); }
void same_sizes(const Tensor& image, const Tensor& mask) { check::same_sizes(mask, "mask", image, "image"); }
void number(double x) { check::finite(x, "scale"); }
void parts(const Tensor& x, int64_t n, ScalarType dtype, Device device, MemoryFormat) {
    OPWRIGHT_CHECK(n > 0, "n is ", n, ", ", 0.5, ", ", true, ", ", x.sizes(), ", ", dtype, ", ", device, ", ",
                   std::string("text"));
}
OPWRIGHT_LIBRARY(checked, m) {
    m.def("check_one", OPWRIGHT_FN(check_one), "CompositeExplicitAutograd");
    m.def("same_device", OPWRIGHT_FN(same_device), "CompositeExplicitAutograd");
    m.def("same_sizes", OPWRIGHT_FN(same_sizes));
    m.def("number", OPWRIGHT_FN(number));
    m.def("parts", OPWRIGHT_FN(parts));
}
"""


@pytest.fixture(scope="module", autouse=True)
def _checked(compile_library: Callable[..., Path]) -> None:
    torch.ops.load_library(compile_library(SOURCE))


def said(op: Callable[..., None], *arguments: object) -> str:
    """Returns the full text of the error, which is only the message."""
    with pytest.raises(RuntimeError) as caught:
        op(*arguments)
    return str(caught.value)


IMAGE = torch.zeros(4, 2)


@pytest.mark.parametrize(
    ("what", "tensor", "message"),
    [
        ("device", IMAGE.to("meta"), "image must be on cpu, got meta: move it with .to('cpu')"),
        ("cuda", IMAGE, "image must be on cuda, got cpu: move it with .to('cuda')"),
        (
            "dtypes",
            IMAGE.long(),
            "image must be uint8, float32 or float64, got int64: convert it with .to(torch.uint8)",
        ),
        ("dtype", IMAGE, "image must be float16, got float32: convert it with .to(torch.float16)"),
        ("ranks", IMAGE[0], "image must have 2 or 3 dimensions, got 1: shape (2,)"),
        ("rank", IMAGE, "image must have 1 dimension, got 2: shape (4, 2)"),
        ("rank", IMAGE[0, 0], "image must have 1 dimension, got 0: shape ()"),
        ("sizes", IMAGE, "warp must have shape (*, 3), got (4, 2)"),
        ("sizes", IMAGE[0], "warp must have shape (*, 3), got (2,)"),
        (
            "contiguous",
            IMAGE.t(),
            "image must be contiguous, got strides (1, 2) for shape (2, 4): call .contiguous() first",
        ),
        ("finite", IMAGE.half(), "warp must be float32 or float64, got float16: convert it with .to(torch.float32)"),
        ("finite", IMAGE.to("meta"), "warp must be on cpu, got meta: move it with .to('cpu')"),
    ],
)
def test_a_failed_check_names_the_argument_and_the_expected_and_actual_values(
    what: str, tensor: torch.Tensor, message: str
) -> None:
    assert said(torch.ops.checked.check_one, tensor, what) == message


@pytest.mark.parametrize(
    ("what", "tensor"),
    [
        ("device", IMAGE),
        ("dtypes", IMAGE.byte()),
        ("dtypes", IMAGE.double()),
        ("dtype", IMAGE.half()),
        ("ranks", IMAGE),
        ("ranks", IMAGE[None]),
        ("rank", IMAGE[0]),
        ("sizes", torch.zeros(0, 3)),
        ("contiguous", IMAGE[1:]),
        ("finite", IMAGE.t()),
        ("finite", torch.zeros(0, 3)),
        ("finite", torch.tensor(1.0)),
    ],
)
def test_a_passing_check_does_not_throw(what: str, tensor: torch.Tensor) -> None:
    assert torch.ops.checked.check_one(tensor, what) is None


def test_a_device_mismatch_names_both_devices_and_the_fix() -> None:
    message = said(torch.ops.checked.same_device, IMAGE, IMAGE.to("meta"))
    assert message == "warp must be on the device of image, cpu, got meta: move it with .to(image.device)"
    assert torch.ops.checked.same_device(IMAGE, IMAGE) is None


@pytest.mark.parametrize(("value", "name"), [(float("nan"), "nan"), (float("inf"), "inf"), (float("-inf"), "-inf")])
def test_a_nonfinite_number_is_reported(value: float, name: str) -> None:
    assert said(torch.ops.checked.number, value) == f"scale must be finite, got {name}"
    assert torch.ops.checked.number(1e308) is None


@given(st.data(), st.sampled_from([torch.float32, torch.float64]), st.booleans(), st.booleans())
def test_a_nonfinite_element_is_found_for_any_strides(
    data: st.DataObject,
    dtype: torch.dtype,
    transposed: bool,
    sliced: bool,
) -> None:
    rows, columns = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    whole = torch.full((rows * 2, columns * 2), float("nan"), dtype=dtype)
    tensor = whole[::2, ::2] if sliced else torch.empty(rows, columns, dtype=dtype)
    tensor.zero_()
    tensor = tensor.t() if transposed else tensor
    assert torch.ops.checked.check_one(tensor, "finite") is None
    row, column = (data.draw(st.integers(0, size - 1)) for size in tensor.shape)
    tensor[row, column] = data.draw(st.sampled_from([float("nan"), float("inf"), float("-inf")]))
    message = said(torch.ops.checked.check_one, tensor, "finite")
    assert message == f"warp must be finite, got {tensor[row, column].item()} at ({row}, {column})"


def test_a_message_is_composed_of_parts_of_every_type() -> None:
    arguments = (torch.bfloat16, torch.device("cuda", 1), torch.channels_last)
    message = said(torch.ops.checked.parts, IMAGE, -1, *arguments)
    assert message == "n is -1, 0.5, True, (4, 2), bfloat16, cuda:1, text"
    assert torch.ops.checked.parts(IMAGE, 1, *arguments) is None


def test_a_check_without_a_message_does_not_compile(compiler_refuses: Callable[..., str]) -> None:
    said = compiler_refuses("#include <opwright/check.h>\nvoid f(int n) { OPWRIGHT_CHECK(n > 0); }")
    assert "OPWRIGHT_CHECK needs a message" in said


@pytest.mark.parametrize("shape", [(4,), (4, 3), (2, 4), (4, 2, 1), ()])
def test_a_shape_mismatch_names_both_shapes(shape: tuple[int, ...]) -> None:
    torch.ops.checked.same_sizes(IMAGE, torch.ones(2, 4).t())
    assert said(torch.ops.checked.same_sizes, IMAGE, torch.zeros(shape)) == (
        f"mask must have the shape of image, (4, 2), got {shape}"
    )
