from __future__ import annotations

import re
from pathlib import Path

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given
from torch import Tensor

from opwright.checker.cases.case import LARGE_BYTES, Case, Family, copied, is_far
from opwright.checker.cases.layouts import far_apart, layouts

SHAPES = st.lists(st.integers(1, 5), min_size=1, max_size=4)
DTYPES = st.sampled_from([torch.float32, torch.float64, torch.bfloat16, torch.complex64, torch.int16, torch.uint8])


def numbered(shape: list[int], dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.arange(1, 1 + torch.Size(shape).numel()).reshape(shape).to(dtype)


def memory(tensor: Tensor) -> Tensor:
    """Return the contents of its storage."""
    return torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage())


def by_name(tensor: Tensor) -> dict[str, Tensor]:
    return {name: make(tensor) for name, _, make in layouts(tensor)}


@given(shape=SHAPES, dtype=DTYPES)
def test_every_layout_has_the_same_values(shape: list[int], dtype: torch.dtype) -> None:
    tensor = numbered(shape, dtype)
    goals = {
        "expanded": tensor[:1].expand(tensor.shape),
        "expanded in the last dimension": tensor[..., :1].expand(tensor.shape),
        # The rows of a sliding window.
        "with overlapping rows": tensor.flatten().unfold(0, tensor[0].numel(), 1)[: len(tensor)].reshape(shape),
    }
    for name, other in by_name(tensor).items():
        assert (other.shape, other.dtype) == (tensor.shape, tensor.dtype)
        assert torch.equal(other, goals.get(name, tensor)), name


@given(shape=st.lists(st.integers(2, 5), min_size=1, max_size=4))
def test_strides_or_the_offset_differ(shape: list[int]) -> None:
    tensor = numbered(shape)
    for name, family, make in layouts(tensor):
        other = make(tensor)
        if name == "as a negative view":
            assert other.is_neg()
        elif family is Family.STRIDES:
            assert other.stride() != tensor.stride(), name
            assert not other.is_contiguous()
            assert other.storage_offset() == 0
        else:
            assert other.stride() == tensor.stride()
            assert other.storage_offset() > 0


def test_a_dimension_of_1_has_another_stride_in_a_contiguous_tensor() -> None:
    tensor = numbered([4, 1, 2, 1])
    other = by_name(tensor)["with other strides of dimensions of 1"]
    assert (tensor.stride(), other.stride()) == ((2, 2, 1, 1), (2, 1, 1, 2))
    assert other.is_contiguous()


def test_a_batch_of_images_has_all_layouts() -> None:
    tensor = numbered([2, 3, 4, 5])
    found = by_name(tensor)
    assert list(found) == [
        "transposed",
        "in a part of wider rows",
        "with dimensions in reverse",
        "every second element",
        "expanded",
        "expanded in the last dimension",
        "with overlapping rows",
        "channels last",
        "with a storage offset",
        "as a negative view",
    ]
    assert found["transposed"].stride() == (60, 20, 1, 4)
    assert found["in a part of wider rows"].stride() == (96, 32, 8, 1)
    assert found["with dimensions in reverse"].stride() == (1, 2, 6, 24)
    assert found["expanded"].stride(0) == 0
    assert found["expanded in the last dimension"].stride(3) == 0
    assert found["with overlapping rows"].stride() == (1, 20, 5, 1)
    assert found["channels last"].is_contiguous(memory_format=torch.channels_last)


def test_a_complex_tensor_is_tried_as_a_conjugate_view() -> None:
    tensor = torch.tensor([1 + 2j, 3 - 1j])
    view = by_name(tensor)["as a conjugate view"]
    assert view.is_conj()
    assert torch.equal(view, tensor)


@pytest.mark.parametrize("shape", [[], [0], [3, 0]])
def test_a_tensor_with_only_one_layout_has_no_variations(shape: list[int]) -> None:
    assert by_name(torch.zeros(shape)) == {}


@pytest.mark.parametrize(
    ("dtype", "filling"),
    [(torch.float32, float("nan")), (torch.int16, 2**15 - 1), (torch.uint8, 255), (torch.bool, True)],
)
def test_gaps_between_elements_contain_conspicuous_values(dtype: torch.dtype, filling: float) -> None:
    found = by_name(torch.zeros(2, 3, dtype=dtype))
    gaps_of = {
        "every second element": slice(1, None, 2),
        "with a storage offset": slice(0, 3),
        "in a part of wider rows": slice(3, 6),
    }
    for name, gaps in gaps_of.items():
        between = memory(found[name])[gaps].double()
        assert torch.allclose(between, torch.tensor(filling).double(), equal_nan=True), name


def resident() -> int:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def test_distant_rows_have_the_same_values_and_use_almost_no_memory() -> None:
    tensor = numbered([4, 6, 5])
    before = resident()
    far = far_apart(tensor)
    assert far is not None
    assert torch.equal(far, tensor)
    assert (far.stride(0) * 3, far.stride()[1:]) > (2**31, (5, 1))
    assert is_far(far)
    assert resident() - before < 2**24


def test_distant_rows_are_never_copied() -> None:
    far = far_apart(numbered([2, 3]))
    assert far is not None
    before = resident()
    assert copied(far) is far
    assert resident() - before < 2**24


@pytest.mark.parametrize("shape", [[], [1, 5], [0, 5], [3, 0], [600, 2]])
def test_a_tensor_without_rows_to_separate_is_skipped(shape: list[int]) -> None:
    assert far_apart(torch.zeros(shape)) is None


def test_a_dense_tensor_is_not_far_apart_however_large_it_is() -> None:
    large = torch.empty(LARGE_BYTES + 64, dtype=torch.uint8)  # never touched, so never allocated
    assert not is_far(large)
    assert is_far(large[:100])


@given(shape=SHAPES, dtype=DTYPES)
def test_a_copy_has_the_same_layout_in_its_own_memory(shape: list[int], dtype: torch.dtype) -> None:
    for name, other in by_name(numbered(shape, dtype)).items():
        copy = copied(other)
        assert torch.equal(copy, other), name
        assert (copy.is_conj(), copy.is_neg()) == (other.is_conj(), other.is_neg())
        assert (copy.stride(), copy.storage_offset()) == (other.stride(), other.storage_offset())
        assert torch.equal(memory(copy).view(torch.uint8), memory(other).view(torch.uint8))
        assert copy.untyped_storage().data_ptr() != other.untyped_storage().data_ptr()


def test_a_copy_keeps_the_conjugate_and_negative_bits() -> None:
    tensor = torch.tensor([1 + 2j, 3 - 1j])
    for lazy in (tensor.conj(), tensor.conj().imag):
        copy = copied(lazy)
        assert (copy.is_conj(), copy.is_neg()) == (lazy.is_conj(), lazy.is_neg())
        assert torch.equal(copy, lazy)


def test_copied_arguments_are_independent_of_the_case_and_each_other() -> None:
    x = torch.zeros(3)
    case = Case("a case", Family.SAMPLE, {"x": x, "xs": [torch.zeros(2), None], "factor": 2.0})
    first, second = case.fresh(), case.fresh()
    first["x"].fill_(1)
    first["xs"][0].fill_(1)
    assert x.sum() == second["x"].sum() == second["xs"][0].sum() == 0
    assert second["xs"][1] is None
    assert second["factor"] == 2.0
