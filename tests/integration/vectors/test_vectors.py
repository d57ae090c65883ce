"""Vector operations on memory, numbers and integers match PyTorch's elementwise results."""

from __future__ import annotations

import math
import os
import subprocess
from typing import TYPE_CHECKING

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.integration.vectors.conftest import SETS, SOURCE
from tests.interpreter import python

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor
    from torch._ops import _OpNamespace as Ops

pytestmark = pytest.mark.sample(of="vectors", by="file")

ONE: dict[str, Callable[[Tensor], Tensor]] = {
    "round": torch.round,
    "floor": torch.floor,
    "ceil": torch.ceil,
    "trunc": torch.trunc,
    "abs": torch.abs,
    "negative": torch.neg,
}
TWO: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "add": torch.add,
    "subtract": torch.sub,
    "multiply": torch.mul,
    "divide": torch.div,
    "min": torch.minimum,
    "max": torch.maximum,
    "lesser": lambda a, b: torch.where(a < b, a, b),
    "greater": lambda a, b: torch.where(a > b, a, b),
    "copysign": torch.copysign,
    "equal": torch.eq,
    "not_equal": torch.ne,
    "less": torch.lt,
    "less_or_equal": torch.le,
    "more": torch.gt,
    "more_or_equal": torch.ge,
}
OF_INTEGERS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "+": torch.add,
    "-": torch.sub,
    "*": torch.mul,
    "&": torch.bitwise_and,
    "|": torch.bitwise_or,
    "^": torch.bitwise_xor,
    "~": lambda a, _: ~a,
    "l": lambda a, _: a << 3,
    "r": lambda a, _: a >> 3,
    "m": torch.minimum,
    "M": torch.maximum,
    "=": torch.eq,
    "!": torch.ne,
    "<": torch.lt,
    ">": torch.gt,
    "[": torch.le,
    "]": torch.ge,
}
NUMBERS = [math.nan, math.inf, -math.inf, 0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-45, 5e-324, 1e30, 8388609.0, -3.7]
FLOATS = [torch.float32, torch.float64]


def same(got: Tensor, expected: Tensor) -> bool:
    """Returns whether two tensors agree in every bit, ignoring NaN payloads and the sign of zero."""
    return torch.equal(got.isnan(), expected.isnan()) and torch.equal(got.nan_to_num(), expected.nan_to_num())


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("function", ONE)
def test_unary_functions(ops: Ops, instruction_set: str, function: str, dtype: torch.dtype) -> None:
    x = torch.cat([torch.tensor(NUMBERS, dtype=torch.float64), 1e3 * torch.randn(501, dtype=torch.float64)]).to(dtype)
    got, expected = ops.apply(function, x, x, x, instruction_set), ONE[function](x)
    assert same(got, expected)
    numbers = ~x.isnan()
    assert torch.equal(torch.signbit(got[numbers]), torch.signbit(expected[numbers]))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("function", TWO)
def test_binary_functions(ops: Ops, instruction_set: str, function: str, dtype: torch.dtype) -> None:
    some = torch.tensor(NUMBERS, dtype=torch.float64).to(dtype)
    x, y = some.repeat(len(some)), some.repeat_interleave(len(some))
    assert same(ops.apply(function, x, y, x, instruction_set), TWO[function](x, y).to(dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_fma_rounds_once_if_the_processor_supports_it(ops: Ops, instruction_set: str, dtype: torch.dtype) -> None:
    tiny = torch.finfo(dtype).eps
    x = torch.full((33,), 1 + tiny, dtype=dtype)
    # (1 + e) (1 + e) - (1 + 2 e) = e^2, which is lost if the product is rounded
    rest = ops.apply("fma", x, x, -(1 + 2 * tiny) * torch.ones(33, dtype=dtype), instruction_set)
    rounds_once = torch.equal(rest, torch.full((33,), tiny**2, dtype=dtype))
    assert rounds_once or (instruction_set == "baseline" and not rest.any())
    a, b, c = torch.randn(3, 100, dtype=dtype)
    torch.testing.assert_close(ops.apply("fma", a, b, c, instruction_set), a * b + c)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("first", [0, 1])
def test_every_second_lane_is_from_the_first_vector_then_from_the_second(
    ops: Ops, instruction_set: str, first: int, dtype: torch.dtype
) -> None:
    lanes = SETS[instruction_set] // dtype.itemsize
    x, y = torch.randn(2, 4, lanes, dtype=dtype)
    got = ops.apply(("even_lanes", "odd_lanes")[first], x.flatten(), y.flatten(), y.flatten(), instruction_set)
    assert torch.equal(got.view(4, lanes), torch.cat([x[:, first::2], y[:, first::2]], dim=1))


@pytest.mark.parametrize("dtype", FLOATS)
def test_interleaved_lanes_alternate_between_the_two_vectors(
    ops: Ops, instruction_set: str, dtype: torch.dtype
) -> None:
    lanes = SETS[instruction_set] // dtype.itemsize
    x, y = torch.randn(2, lanes, dtype=dtype)
    lower, upper = (ops.apply(name, x, y, y, instruction_set) for name in ("interleave_lower", "interleave_upper"))
    assert torch.equal(torch.cat([lower, upper]), torch.stack([x, y], dim=1).flatten())


@pytest.mark.parametrize("dtype", FLOATS)
def test_conversion_to_integers_truncates(ops: Ops, instruction_set: str, dtype: torch.dtype) -> None:
    x = (1e6 * torch.randn(1001)).to(dtype)
    assert torch.equal(ops.apply("whole", x, x, x, instruction_set), x.trunc())


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("operation", OF_INTEGERS)
def test_integer_operations(ops: Ops, instruction_set: str, operation: str, dtype: torch.dtype) -> None:
    limits = torch.iinfo(dtype)
    some = torch.tensor([0, 1, -1, 7, -8, 1000003, limits.min, limits.max, limits.max - 1], dtype=dtype)
    x, y = some.repeat(len(some)), some.repeat_interleave(len(some))
    assert torch.equal(ops.integers(operation, x, y, instruction_set), OF_INTEGERS[operation](x, y).to(dtype))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_any_and_count_up(ops: Ops, instruction_set: str, dtype: torch.dtype) -> None:
    lanes = SETS[instruction_set] // dtype.itemsize
    zeros = torch.zeros(lanes, dtype=dtype)
    assert torch.equal(ops.integers("0", zeros, zeros, instruction_set), torch.arange(lanes, dtype=dtype))
    assert not ops.integers("?", zeros, zeros + 1, instruction_set).any()
    for lane in range(lanes):
        other = zeros + 1
        other[lane] = 0
        assert ops.integers("?", zeros, other, instruction_set).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_reduction_over_lanes_includes_every_lane(ops: Ops, instruction_set: str, dtype: torch.dtype) -> None:
    lanes = SETS[instruction_set] // dtype.itemsize
    for lane in range(lanes):
        x = torch.arange(1, lanes + 1, dtype=dtype)
        x[lane] = -100
        total, least, _, count = ops.over_lanes(x, instruction_set).tolist()
        assert (total, least, count) == (x.sum(), -100, lanes)
        x[lane] = 100
        assert ops.over_lanes(x, instruction_set)[2] == 100
        x[lane] = math.nan
        assert ops.over_lanes(x, instruction_set)[:3].isnan().all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_gather_reads_at_the_offset_of_each_lane(ops: Ops, instruction_set: str, dtype: torch.dtype) -> None:
    x = torch.randn(1000, dtype=dtype)
    offsets = torch.randint(0, 1000, (77,), dtype=torch.int32 if dtype is torch.float32 else torch.int64)
    got = ops.gather(x, offsets, instruction_set)
    assert torch.equal(got, x[offsets.long()])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_two_byte_types_are_converted_as_in_pytorch(ops: Ops, instruction_set: str, dtype: torch.dtype) -> None:
    every = torch.arange(2**16, dtype=torch.int32).to(torch.uint16).view(dtype)
    floats = torch.empty(2**16)
    ops.copy(every, floats, 0, 2**16, instruction_set)
    assert same(floats, every.float())
    # Around each number and halfway to its neighbors, where ties go to even.
    bits = torch.cat(
        [every.float().view(torch.int32) + step for step in (-1, 0, 1, 0x0FFF, 0x1000, 0x1001, 0x7FFF, 0x8000)]
    )
    x = torch.cat([bits.view(torch.float32), torch.randn(1000), torch.randn(1000) * 1e-6, torch.tensor(NUMBERS)])
    halves = torch.empty(len(x), dtype=dtype)
    ops.copy(x, halves, 0, len(x), instruction_set)
    expected = x.to(dtype)
    assert torch.equal(halves.isnan(), expected.isnan())
    numbers = ~expected.isnan()
    assert torch.equal(halves[numbers].view(torch.uint16), expected[numbers].view(torch.uint16))


@given(
    begin=st.integers(0, 20),
    size=st.integers(0, 70),
    dtypes=st.sampled_from(
        [
            (torch.float64, torch.float64),
            *((a, b) for a in (torch.float32, torch.float16, torch.bfloat16) for b in (torch.float32, torch.float16)),
            (torch.float32, torch.bfloat16),
        ]
    ),
)
def test_a_tail_does_not_access_memory_around_it(
    supported: list[str], begin: int, size: int, dtypes: tuple[torch.dtype, torch.dtype]
) -> None:
    source = torch.randn(120).to(dtypes[0])
    for instruction_set in supported:
        into = torch.full((120,), 7.0, dtype=dtypes[1])
        expected = into.clone()
        expected[begin : begin + size] = source[begin : begin + size].to(dtypes[1])
        torch.ops.vectors.copy(source, into, begin, begin + size, instruction_set)
        assert torch.equal(into, expected)


def test_the_environment_selects_a_narrower_instruction_set(supported: list[str]) -> None:
    ask = f"import opwright, torch; opwright.load('vectors', [{str(SOURCE)!r}]); print(torch.ops.vectors.widest())"
    for asked, expected in (("baseline", "baseline"), ("avx2", supported[:2][-1]), ("", supported[-1])):
        done = subprocess.run(
            [*python(), "-c", ask],
            env={**os.environ, "OPWRIGHT_SIMD": asked},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == expected
