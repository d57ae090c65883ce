"""Tensors allocated by `opwright/empty.h` have the same properties as PyTorch's."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from opwright.checker.behavior.poison import poisoned

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SOURCE = """
#include <opwright/empty.h>
#include <opwright/op.h>
using opwright::ScalarType;
using opwright::Tensor;

Tensor like(const Tensor& x) { return opwright::empty_like(x); }
Tensor fresh(const Tensor& x, const std::vector<int64_t>& sizes, std::optional<ScalarType> dtype) {
    return opwright::new_empty(x, sizes, dtype);
}
Tensor matrix(const Tensor& x) { return opwright::new_empty(x, {x.size(0), 3}); }
OPWRIGHT_LIBRARY(%s, m) {
    m.def("like", OPWRIGHT_FN(like), "CompositeExplicitAutograd");
    m.def("fresh", OPWRIGHT_FN(fresh), "CompositeExplicitAutograd");
    m.def("matrix", OPWRIGHT_FN(matrix));
}
"""
DTYPES = (
    *(torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.complex64, torch.bool),
    *(torch.uint8, torch.int16, torch.int64, torch.uint32, torch.float8_e4m3fn),
)
SIZES = st.lists(st.integers(0, 4), max_size=6)
LARGE_RANK = [1, 2] * 12
# Two libraries in one process, each with its own switch.
NAMES = ("emptied", "emptied_too")


@pytest.fixture(scope="module", autouse=True)
def _library(compile_library: Callable[..., Path]) -> None:
    for name in NAMES:
        torch.ops.load_library(compile_library(SOURCE % name))


def properties(tensor: Tensor) -> tuple[Any, ...]:
    return (
        *(tensor.shape, tensor.stride(), tensor.dtype, tensor.device, tensor.layout, tensor.storage_offset()),
        *(tensor.requires_grad, tensor.is_inference(), tensor.untyped_storage().nbytes()),
    )


@st.composite
def tensors(draw: st.DrawFn) -> Tensor:
    """Draw a tensor of any layout: permuted, a slice of a larger one, or expanded."""
    sizes = draw(SIZES)
    tensor = torch.zeros(sizes, dtype=draw(st.sampled_from(DTYPES)))
    tensor = tensor.permute(draw(st.permutations(range(len(sizes)))))
    if sizes:
        dim = draw(st.integers(0, len(sizes) - 1))
        tensor = tensor.narrow(dim, 0, draw(st.integers(0, tensor.shape[dim])))
    repeated = draw(st.none() | st.integers(0, 3))
    return tensor if repeated is None else tensor.unsqueeze(0).expand(repeated, *tensor.shape)


@given(tensors())
def test_empty_like_has_the_same_strides_as_in_pytorch(x: Tensor) -> None:
    assert properties(torch.ops.emptied.like(x)) == properties(torch.empty_like(x))


@given(SIZES, st.none() | st.sampled_from(DTYPES))
def test_new_empty_is_row_major(sizes: list[int], dtype: torch.dtype | None) -> None:
    x = torch.zeros(3, 2, dtype=torch.float16).t()
    expected = x.new_empty(sizes, dtype=dtype)
    assert properties(torch.ops.emptied.fresh(x, sizes, dtype)) == properties(expected)


def test_any_rank_can_be_allocated() -> None:
    x = torch.zeros(LARGE_RANK)
    assert properties(torch.ops.emptied.like(x)) == properties(torch.empty_like(x))
    assert properties(torch.ops.emptied.fresh(x, LARGE_RANK, None)) == properties(x)
    assert properties(torch.ops.emptied.fresh(x, [], None)) == properties(torch.empty([]))
    assert torch.ops.emptied.matrix(x[0, :1]).shape == (1, 3)


def test_a_new_tensor_is_on_the_device_of_its_argument() -> None:
    x = torch.zeros(2, 3, device="meta")
    assert properties(torch.ops.emptied.like(x)) == properties(x)
    assert properties(torch.ops.emptied.fresh(x, [4], None)) == properties(torch.empty(4, device="meta"))


def test_inference_mode_returns_inference_tensors() -> None:
    with torch.inference_mode():
        assert torch.ops.emptied.like(torch.zeros(2)).is_inference()


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([2, -3], "a new tensor's sizes must not be negative, got -3 for dimension 1 of 2"),
        (
            [2**40, 2**40],
            "a new tensor of shape (1099511627776, 1099511627776) would have more elements than an int64 can count",
        ),
    ],
)
def test_invalid_sizes_are_rejected(sizes: list[int], message: str) -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.ops.emptied.fresh(torch.zeros(1), sizes, None)
    assert str(caught.value) == message


def test_an_out_of_memory_error_names_the_shape() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.ops.emptied.fresh(torch.zeros(1), [2**30, 2**29], None)
    assert str(caught.value).startswith("cannot allocate a tensor of shape (1073741824, 536870912): ")


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("dtype", "filling"), [(torch.bfloat16, None), (torch.int64, 2**63 - 1), (torch.bool, True)])
def test_a_check_fills_new_tensors(name: str, dtype: torch.dtype, filling: int | None) -> None:
    ops = getattr(torch.ops, name)
    x = torch.zeros(1000, dtype=dtype)
    with poisoned():
        # Memory that was just released is reused, with the zeros that were written to it.
        ops.like(x).zero_()
        alike = ops.like(x)
        ops.fresh(x, [2, 500], None).zero_()
        for fresh in (alike, ops.fresh(x, [2, 500], None)):
            assert bool((fresh.isnan() if filling is None else fresh == filling).all())
            assert fresh.dtype == dtype


@pytest.mark.parametrize("name", NAMES)
def test_only_a_check_fills_new_tensors(name: str, compile_library: Callable[..., Path]) -> None:
    switch = ctypes.CDLL(str(compile_library(SOURCE % name))).opwright_fill_new_tensors
    switch.argtypes, switch.restype = (ctypes.c_bool,), ctypes.c_bool

    def is_on() -> bool:
        was_on = switch(ctypes.c_bool())
        switch(was_on)
        return bool(was_on)

    assert not is_on()
    with poisoned():
        assert is_on()
        with poisoned(on=False):
            assert not is_on()
        assert is_on()
    assert not is_on()
