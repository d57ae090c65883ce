from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from opwright.bundle.format.manifest import Dimension
from opwright.bundle.source import shape
from opwright.bundle.source.shape import Shape, parse_shape
from opwright.errors import BundleError

DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.uint8, torch.int64, torch.bool]
DIMENSIONS = st.integers(0, 2**40) | st.tuples(st.integers(0, 99), st.none() | st.integers(100, 2**40)).map(
    lambda ends: Dimension(*ends)
)
SHAPES = st.builds(Shape, st.sampled_from([*DTYPES, torch.complex64]), st.lists(DIMENSIONS, max_size=5).map(tuple))


@given(SHAPES)
def test_a_written_shape_is_parsed_unchanged(one: Shape) -> None:
    assert parse_shape(str(one)) == one


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("float32[1..64,3,224,224]", "float32[1..64,3,224,224]"),
        ("1..64,3,224,224", "float32[1..64,3,224,224]"),
        ("1..", "float32[1..]"),
        ("7", "float32[7]"),
        (" int64[ 1.. , 80 ] ", "int64[1..,80]"),
        ("uint8[5..5,3]", "uint8[5,3]"),
        ("bool[]", "bool[]"),
        ("half[2]", "float16[2]"),
    ],
)
def test_the_notation_has_a_short_form(text: str, written: str) -> None:
    assert str(parse_shape(text)) == written


@pytest.mark.parametrize(
    "text", ["", "float32", "float32[", "float32[1]]", "[1]", "1;2", "1..2..3", "-1", "1,,2", "N,3", "[]"]
)
def test_text_that_is_not_a_shape_is_rejected_with_an_example(text: str) -> None:
    with pytest.raises(BundleError, match=r"is not a shape: expected one such as float32\[1\.\.64,3,224,224\]"):
        parse_shape(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("float33[1]", "names the dtype 'float33', which PyTorch does not have"),
        ("nn[1]", "names the dtype 'nn'"),
        ("4..3", "'4..3' in the shape '4..3' is not a range: expected the smallest size first"),
        (f"{2**63}", "the smallest size first, and none above 2^63"),
        ("9" * 5000, "is not a shape: expected one such as"),
        (",".join(["1"] * 65), "has 65 dimensions: expected at most 64"),
    ],
)
def test_a_wrong_dtype_or_range_is_reported(text: str, message: str) -> None:
    with pytest.raises(BundleError) as refused:
        parse_shape(text)
    assert message in str(refused.value)


def test_dimensions_in_which_samples_differ_range_from_the_smallest_to_the_largest() -> None:
    tensors = [torch.ones(2, 3), torch.ones(5, 3), torch.ones(4, 3)]
    assert shape.shape_of(tensors) == parse_shape("2..5,3")


@pytest.mark.parametrize(
    ("tensor", "why"),
    [
        (torch.ones(1, 3), ""),
        (torch.ones(9, 3), ""),
        (torch.ones(0, 3), "float32[0,3] is not float32[1..,3]"),
        (torch.ones(1, 4), "float32[1,4] is not float32[1..,3]"),
        (torch.ones(1), "float32[1] is not float32[1..,3]"),
        (torch.ones(1, 3, dtype=torch.int64), "int64[1,3] is not float32[1..,3]"),
    ],
)
def test_a_tensor_outside_a_shape_is_described(tensor: torch.Tensor, why: str) -> None:
    assert shape.why_not(tensor, parse_shape("1..,3")) == why


@given(st.lists(SHAPES, min_size=1, max_size=3), st.integers(1, 2**20))
def test_middle_sizes_are_in_their_ranges_and_equal_for_equal_ranges(shapes: list[Shape], most: int) -> None:
    sizes = shape.middle(shapes, most)
    by_range: dict[Dimension, int] = {}
    for one, size in zip(shapes, sizes, strict=True):
        for dim, number in zip(one.dims, size, strict=True):
            if isinstance(dim, Dimension):
                largest = math.inf if dim.max is None else dim.max
                assert dim.min < number <= largest
                assert number >= min(2, largest)
                assert by_range.setdefault(dim, number) == number
            else:
                assert number == dim


def test_middle_sizes_have_no_more_elements_than_the_limit_if_possible() -> None:
    shapes = [parse_shape("1..64,3,224,224"), parse_shape("1..64")]
    assert shape.middle(shapes) == [(4, 3, 224, 224), (4,)]
    assert shape.smallest(shapes) == [(1, 3, 224, 224), (1,)]
    assert shape.middle([parse_shape("2..3,4096,4096")]) == [(3, 4096, 4096)]


@pytest.mark.parametrize("dtype", [*DTYPES, torch.complex64], ids=str)
def test_random_inputs_have_their_shape_and_are_the_same_for_the_same_seed(dtype: torch.dtype) -> None:
    shapes = [Shape(dtype, (4, 5))]
    one, again, other = (shape.random_inputs(shapes, [(4, 5)], seed)[0] for seed in (0, 0, 1))
    assert shape.why_not(one, shapes[0]) == ""
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


@given(st.lists(st.integers(0, 4), min_size=2, max_size=2), st.lists(st.integers(0, 9), min_size=2, max_size=2))
def test_a_stretched_tensor_repeats_its_values(before: list[int], after: list[int]) -> None:
    tensor = torch.arange(math.prod(before)).reshape(before)
    stretched = shape.stretched(tensor, after)
    assert list(stretched.shape) == after
    assert stretched.is_contiguous()
    for index in range(min(before[0], after[0])):
        shared = min(before[1], after[1])
        assert torch.equal(stretched[index, :shared], tensor[index, :shared])
    assert set(stretched.flatten().tolist()) <= {*tensor.flatten().tolist(), 0}
