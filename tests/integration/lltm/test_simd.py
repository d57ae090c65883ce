"""The vector code of ops/lltm, for each instruction set of this processor, compared with PyTorch in float64."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import elu

import opwright

if TYPE_CHECKING:
    from torch import Tensor
    from torch._ops import _OpNamespace as Ops

pytestmark = pytest.mark.sample(of="vectors", by="file")

PACKAGE = Path(__file__).parents[2] / "packages" / "lltm_simd"
SETS = ("baseline", "avx2", "avx512")
SPECIAL = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1e-30, -1e-30, 100.0, -100.0, 1000.0, -1000.0]


@pytest.fixture(scope="module")
def ops() -> Ops:
    return cast("Ops", opwright.open(PACKAGE).ops)


@pytest.fixture(params=SETS)
def instruction_set(request: pytest.FixtureRequest, ops: Ops) -> str:
    name: str = request.param
    if not ops.supports(name):
        pytest.skip(f"this processor has no {name}")
    return name


def units_off(got: Tensor, exact: Tensor) -> float:
    """The error of `got` in units in the last place of its dtype."""
    unit = torch.finfo(got.dtype).eps * exact.abs().clamp_min(torch.finfo(got.dtype).tiny)
    return float(((got.double() - exact).abs() / unit).max())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_elu_is_accurate_to_two_units_in_the_last_place(ops: Ops, instruction_set: str, dtype: torch.dtype) -> None:
    x = torch.cat([torch.linspace(-86, 86, 400_001), torch.linspace(-1, 1, 100_001), torch.logspace(-30, 0, 10_001)])
    x = x.to(dtype)
    # There is nothing wider to compare float64 with; PyTorch's own is accurate to one unit.
    allowed = 2 if dtype is torch.float32 else 3
    assert units_off(ops.elu(x, instruction_set), elu(x.double())) <= allowed


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_special_values_are_propagated(ops: Ops, instruction_set: str, dtype: torch.dtype) -> None:
    x = torch.tensor(SPECIAL, dtype=dtype)
    torch.testing.assert_close(ops.elu(x, instruction_set), elu(x.double()).to(dtype), equal_nan=True)


@given(size=st.integers(0, 70), dtype=st.sampled_from([torch.float32, torch.float64, torch.bfloat16]))
def test_all_elements_are_computed_and_none_beyond_the_end_is_accessed(size: int, dtype: torch.dtype) -> None:
    ops = torch.ops.lltm_simd
    x = torch.randn(size + 5).to(dtype)
    for name in filter(ops.supports, SETS):
        torch.testing.assert_close(ops.elu(x[:size], name), elu(x[:size]))


@given(rows=st.integers(0, 40), dtype=st.sampled_from([torch.float32, torch.float64]))
def test_packing_and_unpacking_columns_is_lossless(rows: int, dtype: torch.dtype) -> None:
    ops = torch.ops.lltm_simd
    x = torch.randn(rows, 4, dtype=dtype)
    for name in filter(ops.supports, SETS):
        assert torch.equal(ops.round_trip(x, name), x)


SIZES = st.tuples(st.integers(0, 20), st.integers(0, 9), st.integers(0, 70))


@given(sizes=SIZES, adds=st.booleans(), dtype=st.sampled_from([torch.float32, torch.float64, torch.bfloat16]))
def test_a_small_product_is_correct(sizes: tuple[int, int, int], adds: bool, dtype: torch.dtype) -> None:
    ops = torch.ops.lltm_simd
    rows, depth, columns = sizes
    wide = torch.float32 if dtype is torch.bfloat16 else dtype
    left, right = torch.randn(rows, depth).to(dtype), torch.randn(depth, columns + 3, dtype=wide)[:, :columns]
    before = torch.randn(rows, columns).to(dtype)
    expected = (left.to(wide) @ right + (before if adds else 0)).to(dtype)
    allowed = 1e-2 if dtype is torch.bfloat16 else 1e-5
    for name in filter(ops.supports, SETS):
        got = ops.multiply(left, right, before, adds, name)
        torch.testing.assert_close(got, expected, rtol=allowed, atol=allowed)


@given(sizes=SIZES, adds=st.booleans(), dtype=st.sampled_from([torch.float32, torch.bfloat16]))
def test_a_product_of_pairs_is_correct(sizes: tuple[int, int, int], adds: bool, dtype: torch.dtype) -> None:
    ops = torch.ops.lltm_simd
    if not ops.supports("avx512_bf16"):
        pytest.skip("this processor has no avx512_bf16")
    rows, half, columns = sizes
    left, right = torch.randn(rows, 2 * half).bfloat16(), torch.randn(2 * half, columns).bfloat16()
    before = torch.randn(rows, columns).to(dtype)
    expected = (left.double() @ right.double() + (before if adds else 0)).to(dtype)
    allowed = 1e-2 if dtype is torch.bfloat16 else 1e-5
    got = ops.multiply_pairs(left, right, before, adds)
    torch.testing.assert_close(got, expected, rtol=allowed, atol=allowed)


@given(rows=st.integers(0, 600), columns=st.integers(0, 200), dtype=st.sampled_from([torch.float32, torch.float64]))
def test_the_sum_of_rows_is_correct_for_each_column(rows: int, columns: int, dtype: torch.dtype) -> None:
    ops = torch.ops.lltm_simd
    x = torch.randn(rows, columns, dtype=dtype)
    for name in filter(ops.supports, SETS):
        torch.testing.assert_close(ops.sum_of_rows(x, name), x.double().sum(0).to(dtype), rtol=1e-5, atol=1e-4)


def test_the_sum_of_many_rows_stays_accurate(ops: Ops, instruction_set: str) -> None:
    x = torch.full((100_000, 3), 0.1)
    torch.testing.assert_close(ops.sum_of_rows(x, instruction_set), x.double().sum(0).float(), rtol=1e-5, atol=0)


@pytest.fixture(autouse=True)
def _opened(ops: Ops) -> None:
    """Hypothesis cannot pass fixtures to its examples, so these use the registered operators."""
