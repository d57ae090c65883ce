from __future__ import annotations

from typing import TYPE_CHECKING, Any

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given
from torch import Tensor

from opwright.checker.cases.code import call_code, value_code
from opwright.checker.cases.layouts import far_apart, layouts

if TYPE_CHECKING:
    from tests.unit.checker.conftest import MakeSubject

# Layouts in which elements share memory.
OTHER_NUMBERS = {"expanded", "expanded in the last dimension", "with overlapping rows"}
NAN, INF = float("nan"), float("inf")
DTYPES = [
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.float8_e4m3fn, torch.complex64),
    *(torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.int8, torch.int16, torch.int32, torch.int64),
    torch.bool,
]


def evaluated(value: Any) -> Any:
    return eval(value_code(value), {"torch": torch})


def assert_laid_out_alike(made: object, tensor: Tensor) -> None:
    assert isinstance(made, Tensor)
    assert (made.dtype, made.device, made.shape) == (tensor.dtype, tensor.device, tensor.shape)
    assert (made.stride(), made.storage_offset()) == (tensor.stride(), tensor.storage_offset())


@given(
    shape=st.lists(st.integers(0, 5), max_size=3),
    dtype=st.sampled_from([torch.float32, torch.float64, torch.complex64, torch.int64, torch.uint8, torch.bool]),
)
def test_a_tensor_in_any_layout_is_made_with_its_dtype_sizes_strides_and_offset(
    shape: list[int], dtype: torch.dtype
) -> None:
    tensor = torch.ones(shape).to(dtype)
    for other in (tensor, *(make(tensor) for _, _, make in layouts(tensor))):
        assert_laid_out_alike(evaluated(other), other)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [0, 2, 40])
def test_every_dtype_can_be_made(dtype: torch.dtype, count: int) -> None:
    tensor = torch.ones(count).to(dtype)
    made = evaluated(tensor)
    assert_laid_out_alike(made, tensor)
    if count == 2:
        assert made.tolist() == tensor.tolist()


def test_a_small_tensor_is_written_out() -> None:
    assert value_code(torch.tensor([[1.0, 2.5]])) == "torch.tensor([[1.0, 2.5]])"
    assert value_code(torch.tensor(7)) == "torch.tensor(7, dtype=torch.int64)"
    assert value_code(torch.ones(2, 33)) == "torch.randn((2, 33))"


@pytest.mark.parametrize("numbers", [[NAN, INF, -INF, 1.0], [complex(NAN, -INF), complex(1, NAN)]])
def test_a_small_tensor_keeps_what_are_no_usual_numbers(numbers: list[Any]) -> None:
    assert str(evaluated(torch.tensor(numbers))) == str(torch.tensor(numbers))


@pytest.mark.parametrize("number", [NAN, INF, -INF, 1e-40, -0.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_larger_tensor_keeps_them_at_their_places(number: float, dtype: torch.dtype) -> None:
    tensor = torch.ones(4, 5, 6, dtype=dtype)
    tensor[1, 2, 3], tensor[3, 4, 5] = number, number
    usual = float(tensor[1, 2, 3]) == 1e-40 and dtype == torch.float64  # no denormal there
    for other in (tensor, *(make(tensor) for name, _, make in layouts(tensor) if name not in OTHER_NUMBERS)):
        made = evaluated(other)
        assert_laid_out_alike(made, other)
        for place in ((1, 2, 3), (3, 4, 5)):
            same = repr(made[place].item()) == repr(other[place].item())
            assert same != usual


def test_numbers_are_drawn_from_the_range_of_those_that_are_there() -> None:
    code = value_code(torch.tensor([3, -2] * 10))
    assert code == "torch.randint(-2, 4, (20,), dtype=torch.int64)"
    whole = torch.tensor([torch.iinfo(torch.int64).min, torch.iinfo(torch.int64).max] * 10)
    assert_laid_out_alike(evaluated(whole), whole)


def test_rows_far_apart_are_made_without_touching_what_lies_between() -> None:
    far = far_apart(torch.ones(2, 3))
    assert far is not None
    assert_laid_out_alike(eval(value_code(far).partition("#")[0], {"torch": torch}), far)


def test_a_tensor_without_numbers_keeps_its_layout() -> None:
    meta = torch.ones(3, 4, device="meta").t()
    assert_laid_out_alike(evaluated(meta), meta)


@pytest.mark.parametrize(
    "value",
    [
        *(3, True, None, "a 'quoted' word", 2.5, INF, -INF, [1, 2], [], [INF, 1.0], 1 + 2j, torch.float16),
        *(torch.strided, torch.device("cpu"), torch.device("cuda", 1), torch.channels_last, ["a", "b"]),
    ],
)
def test_what_is_no_tensor_is_written_as_it_is(value: object) -> None:
    assert evaluated(value) == value


def test_numbers_unlike_themselves_are_written_too() -> None:
    assert str(evaluated([NAN, complex(INF, NAN)])) == str([NAN, complex(INF, NAN)])


def test_the_lines_of_a_call_run_and_make_the_call(make_subject: MakeSubject) -> None:
    subject = make_subject("""
@library.op
def shown(x: Tensor, parts: Sequence[Tensor], offset: Tensor | None, factor: float = 2.0, *, mode: str) -> Tensor:
    if mode != "a":
        raise ValueError(mode)
    return x * factor + sum(parts) if offset is None else offset

@shown.samples
def _(make):
    yield make.call(make.randn(3, 4).t(), [make.randn(4, 3), make.randn(3)], None, float("-inf"), mode="a")
    yield make.call(make.randn(4), (make.randn(4),), make.randn(4), mode="a")
""")
    for case in subject.samples:
        code = call_code(subject.op, case)
        *before, call = code.splitlines()
        made: dict[str, Any] = {}
        exec("\n".join([*before, f"result = {call}"]), made)
        assert before[:2] == ["import opwright, torch", f"opwright.open({str(subject.library.root)!r})"]
        assert_laid_out_alike(made["x"], case.arguments["x"])
        assert_laid_out_alike(made["parts"][0], case.arguments["parts"][0])
        assert made["result"].shape == subject.call(case.fresh())[0].shape
        assert call.startswith(f"torch.ops.{subject.library.namespace}.shown(x, parts, ")
        assert call.endswith("mode='a')")
