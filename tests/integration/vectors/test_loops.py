"""Loops over tensors match PyTorch for all shapes, strides and dtypes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor
    from torch._ops import _OpNamespace as Ops

pytestmark = pytest.mark.sample(of="vectors", by="file")

SOURCE = Path(__file__).parents[2] / "packages" / "vectors" / "loops.cpp"
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
FLOATS = DTYPES[:2]


@pytest.fixture(scope="module", autouse=True)
def loops() -> Ops:
    opwright.load("loops", [SOURCE])
    return torch.ops.loops


@st.composite
def broadcast(draw: st.DrawFn, count: int, min_rank: int = 0) -> list[Tensor]:
    """Draws tensors whose shapes broadcast, each with its own strides."""
    shape = draw(st.lists(st.integers(0, 5) | st.integers(15, 35), min_size=min_rank, max_size=4))
    tensors = []
    for _ in range(count):
        sizes = [1 if draw(st.booleans()) else size for size in shape][draw(st.integers(0, len(shape) - min_rank)) :]
        order = draw(st.permutations(range(len(sizes))))
        gap = draw(st.integers(1, 2))
        laid_out = torch.randn([sizes[d] for d in order] + [gap], dtype=torch.float64)[..., 0]
        tensor = laid_out.permute([order.index(d) for d in range(len(sizes))])
        if draw(st.booleans()):  # zero strides
            tensor = tensor[:1].expand(tensor.shape) if tensor.dim() and tensor.shape[0] else tensor
        tensors.append(tensor)
    return tensors


@given(tensors=broadcast(3), dtype=st.sampled_from(DTYPES))
def test_tensors_are_broadcast_as_in_pytorch(tensors: list[Tensor], dtype: torch.dtype) -> None:
    x, y, z = (tensor.to(dtype) for tensor in tensors)
    got = torch.ops.loops.three(x, y, z)
    wide = torch.float64 if dtype is torch.float64 else torch.float32
    expected = (x.to(wide) - 2 * y.to(wide) + z.to(wide).clamp_min(0)).to(dtype)
    assert got.shape == expected.shape
    assert got.is_contiguous()
    torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_noncontiguous_rows_of_any_length(loops: Ops, dtype: torch.dtype) -> None:
    # Short rows are copied together, up to a kilobyte; the last vector of a long row overlaps the one before it.
    for size in (*range(1, 70), 255, 256, 257, 1000):
        x = torch.randn(50, size + 1).to(dtype)[:, :size]
        column, row = torch.randn(50, 1).to(dtype), torch.randn(size).to(dtype)
        expected = (x.double() - 2 * column.double() + row.double().clamp_min(0)).to(dtype)
        torch.testing.assert_close(loops.three(x, column, row), expected)


@given(tensors=broadcast(2), dtype=st.sampled_from(FLOATS), wanted=st.tuples(st.booleans(), st.booleans()))
def test_only_the_wanted_results_are_returned(
    tensors: list[Tensor], dtype: torch.dtype, wanted: tuple[bool, bool]
) -> None:
    x, y = (tensor.to(dtype) for tensor in tensors)
    got = torch.ops.loops.two_results(x, y, wanted)
    for result, expected, is_wanted in zip(got, (x + y, x - y), wanted, strict=True):
        if is_wanted:
            assert torch.equal(result, expected)
        else:
            assert result is None


@given(tensors=broadcast(1, min_rank=1), dtype=st.sampled_from(DTYPES))
def test_rows_are_mapped_one_by_one(tensors: list[Tensor], dtype: torch.dtype) -> None:
    x = tensors[0].to(dtype)
    got = torch.ops.loops.softmax(x)
    assert got.is_contiguous()
    torch.testing.assert_close(got, x.double().softmax(-1).to(dtype))


@given(tensors=broadcast(2, min_rank=1), dtype=st.sampled_from(FLOATS))
def test_rows_are_reduced_one_by_one(tensors: list[Tensor], dtype: torch.dtype) -> None:
    x, y = (tensor.to(dtype) for tensor in tensors)
    torch.testing.assert_close(torch.ops.loops.dot(x, y), (x * y).sum(-1), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_row_broadcasts_with_columns_and_with_one_number_per_row(loops: Ops, dtype: torch.dtype) -> None:
    x, weight, shift = (torch.randn(size, dtype=dtype) for size in ((3, 5, 37), (37,), (3, 5, 1)))
    expected = (x - x.mean(-1, keepdim=True)) / x.std(-1, correction=0, keepdim=True) * weight + shift
    torch.testing.assert_close(loops.normalized(x, weight, shift), expected)


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_minimum_and_maximum_of_a_row(loops: Ops, dtype: torch.dtype) -> None:
    for size in (*range(1, 40), 1000):
        x = torch.randn(7, size, dtype=dtype) + 100  # zeros past the end would be the minimum
        assert torch.equal(loops.least(x), x.amin(-1))
        assert torch.equal(loops.most(-x), -x.amin(-1))
        x[3, size // 2] = math.nan
        assert torch.equal(loops.least(x).isnan(), torch.arange(7) == 3)
        assert torch.equal(loops.most(x).isnan(), torch.arange(7) == 3)


def test_empty_rows(loops: Ops) -> None:
    x = torch.zeros(3, 0)
    assert torch.equal(loops.sums(x), torch.zeros(3))
    assert torch.equal(loops.least(x), torch.full((3,), math.inf))
    assert torch.equal(loops.most(x), torch.full((3,), -math.inf))
    assert loops.softmax(x).shape == (3, 0)
    assert loops.sums(torch.zeros(0, 3)).shape == (0,)


def test_a_long_sum_keeps_its_precision(loops: Ops) -> None:
    x = torch.full((2, 3_000_000), 0.1)
    torch.testing.assert_close(loops.sums(x), x.double().sum(-1).float(), rtol=1e-6, atol=0)


@pytest.fixture
def each_thread_count() -> Iterator[list[int]]:
    before = torch.get_num_threads()
    yield [1, 2, 3, 7]
    torch.set_num_threads(before)


def test_results_do_not_depend_on_the_number_of_threads(loops: Ops, each_thread_count: list[int]) -> None:
    x, y = torch.randn(2, 300, 1001)
    results = []
    for threads in each_thread_count:
        torch.set_num_threads(threads)
        results.append((loops.three(x, y[:, :1], x), loops.softmax(x), loops.dot(x, y)))
    for others in results[1:]:
        assert all(map(torch.equal, results[0], others))


def test_a_scalar_has_the_dtype_of_the_tensors(loops: Ops) -> None:
    x = torch.ones(3, dtype=torch.float64)
    assert torch.equal(loops.one(x, 0.1), 0.1 * x)
    assert torch.equal(loops.one(x.float(), 0.1), torch.full((3,), 0.1))


def test_unsupported_tensors_are_rejected(loops: Ops) -> None:
    x = torch.zeros(2, 3)
    with pytest.raises(RuntimeError, match=r"elementwise requires tensors of one dtype, got float32 and float64"):
        loops.three(x, x.double(), x)
    with pytest.raises(RuntimeError, match=r"elementwise has no kernel for float32: name its type"):
        loops.of_double(x)
    with pytest.raises(RuntimeError, match=r"elementwise has no kernel for int32"):
        loops.one(x.int(), 1)
    with pytest.raises(RuntimeError, match=r"whose shapes broadcast, got a dimension of 3 and one of 2: shape \(2,\)"):
        loops.three(x, x, torch.zeros(2))
    with pytest.raises(RuntimeError, match=r"wanted must have 2 flags, got 1"):
        loops.two_results(x, x, [True])
    with pytest.raises(RuntimeError, match=r"map_rows requires tensors with at least one dimension"):
        loops.softmax(torch.zeros(()))
    with pytest.raises(RuntimeError, match=r"reduce_rows requires tensors of one dtype"):
        loops.dot(x, x.double())
