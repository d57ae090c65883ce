from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor

from opwright.checker.cases.case import Case, Family
from opwright.checker.cases.code import call_code, inputs_of, loaded_names, value_code
from opwright.checker.cases.layouts import far_apart
from opwright.checker.processes.reproduction import saved

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.checker.conftest import MakeSubject

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


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [0, 2])
def test_every_dtype_can_be_written_out(dtype: torch.dtype, count: int) -> None:
    tensor = torch.ones(count).to(dtype)
    made = evaluated(tensor)
    assert_laid_out_alike(made, tensor)
    assert made.tolist() == tensor.tolist()


def test_a_small_tensor_is_written_out() -> None:
    assert value_code(torch.tensor([[1.0, 2.5]])) == "torch.tensor([[1.0, 2.5]])"
    assert value_code(torch.tensor(7)) == "torch.tensor(7, dtype=torch.int64)"


@pytest.mark.parametrize("numbers", [[NAN, INF, -INF, 1.0], [complex(NAN, -INF), complex(1, NAN)]])
def test_a_small_tensor_keeps_nonfinite_values(numbers: list[Any]) -> None:
    assert str(evaluated(torch.tensor(numbers))) == str(torch.tensor(numbers))


@pytest.mark.parametrize(
    ("tensor", "is_loaded"),
    [
        (torch.ones(6), False),
        (torch.ones(7), True),
        (torch.ones(2, 3).t(), True),
        (torch.ones(8)[5:], True),
        (torch.ones(1).expand(4), True),
        (torch.tensor([1j]).conj(), True),
        (torch.tensor([2], dtype=torch.uint8).view(torch.bool), True),
        (torch.tensor([True]), False),
        (torch.ones(0, 9), False),
        (torch.ones(9, device="meta"), False),
    ],
)
def test_a_tensor_without_an_expression_is_loaded(tensor: Tensor, is_loaded: bool) -> None:
    case = Case("a case", Family.SAMPLE, {"x": tensor, "xs": [None, tensor], "factor": 2.0})
    assert loaded_names(case) == (["x", "xs"] if is_loaded else [])


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float16, torch.bool, torch.float8_e5m2])
def test_a_tensor_too_large_for_a_file_is_drawn_again(dtype: torch.dtype) -> None:
    large = torch.empty(2**31 // dtype.itemsize + 1, dtype=dtype)  # untouched pages use no memory
    large[:4] = torch.tensor([1, 0, 1, 1]).to(dtype)
    case = Case("a case", Family.FAR, {"x": large, "xs": [large]})
    assert loaded_names(case) == []
    code = value_code(large)
    assert re.fullmatch(r"torch\.(randn\(\(\d+,\)|randint\(0, 2, \(\d+,\)).*\)", code), code
    small = eval(re.sub(r"\(\d+,\)", "(7,)", code), {"torch": torch})
    assert (small.dtype, small.shape) == (dtype, (7,))


def test_distant_rows_are_made_without_touching_the_memory_between_them() -> None:
    far = far_apart(torch.ones(2, 3))
    assert far is not None
    assert_laid_out_alike(eval(value_code(far), {"torch": torch}), far)


def test_a_tensor_without_data_keeps_its_layout() -> None:
    meta = torch.ones(3, 4, device="meta").t()
    assert_laid_out_alike(evaluated(meta), meta)


@pytest.mark.parametrize(
    "value",
    [
        *(3, True, None, "a 'quoted' word", 2.5, INF, -INF, [1, 2], [], [INF, 1.0], 1 + 2j, torch.float16),
        *(torch.strided, torch.device("cpu"), torch.device("cuda", 1), torch.channels_last, ["a", "b"]),
    ],
)
def test_non_tensor_values_are_written_unchanged(value: object) -> None:
    assert evaluated(value) == value


def test_nan_is_written_too() -> None:
    assert str(evaluated([NAN, complex(INF, NAN)])) == str([NAN, complex(INF, NAN)])


def test_the_lines_of_a_call_run_and_make_the_call(make_subject: MakeSubject, tmp_path: Path) -> None:
    subject = make_subject("""
@library.op
def shown(x: Tensor, parts: Sequence[Tensor], offset: Tensor | None, factor: float = 2.0, *, mode: str) -> Tensor:
    if mode != "a":
        raise ValueError(mode)
    return x * factor + sum(parts) if offset is None else offset

@shown.samples
def _(make):
    yield make.call(make.randn(3, 4).t(), [make.randn(4, 3), make.randn(3)], None, float("-inf"), mode="a")
    yield make.call(make.randn(9), (make.randn(9),), make.randn(9), mode="a")
""")
    for case in subject.samples:
        assert (f"torch.load({inputs_of(case)!r})" in call_code(subject.op, case)) == bool(loaded_names(case))
        code = call_code(subject.op, case).replace(inputs_of(case), str(saved(case, tmp_path)))
        *before, call = code.splitlines()
        made: dict[str, Any] = {}
        exec("\n".join([*before, f"result = {call}"]), made)
        assert before[:2] == ["import opwright, torch", f"opwright.open({str(subject.library.root)!r})"]
        assert_laid_out_alike(made["x"], case.arguments["x"])
        assert torch.equal(made["x"], case.arguments["x"])
        assert_laid_out_alike(made["parts"][0], case.arguments["parts"][0])
        assert made["result"].shape == subject.call(case.fresh())[0].shape
        assert call.startswith(f"torch.ops.{subject.library.namespace}.shown(x, parts, ")
        assert call.endswith("mode='a')")
