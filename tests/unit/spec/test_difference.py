from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch

from opwright.spec.difference import Difference, Goal, described, differs, first_line

if TYPE_CHECKING:
    from torch import Tensor

NAN, INF = float("nan"), float("inf")


def ones(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.ones(shape, dtype=dtype)


def found(result: Any, own: Any, precise: Any = None, **tolerance: Any) -> Difference:
    difference = differs(result, Goal(own, own if precise is None else precise), **tolerance)
    assert difference is not None
    return difference


def changed(tensor: Tensor, place: int, number: float) -> Tensor:
    other = tensor.clone()
    other.view(-1)[place] = number
    return other


# -- tensors ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "near", "far"),
    [
        (torch.float64, 1e-10, 1e-8),
        (torch.float32, 1e-6, 1e-4),
        (torch.bfloat16, 1e-2, 1e-1),
        (torch.float16, 1e-3, 1e-2),
        (torch.complex64, 1e-6, 1e-4),
        (torch.complex128, 1e-10, 1e-8),
    ],
)
def test_the_tolerance_depends_on_the_dtype(dtype: torch.dtype, near: float, far: float) -> None:
    own = ones(4, dtype=dtype)
    assert differs(own + near, Goal(own, own)) is None
    assert differs(own + far, Goal(own, own)) is not None


def test_a_result_may_be_close_to_the_oracle_or_to_the_reference_in_the_same_dtype() -> None:
    own, precise = torch.tensor([1.0, 5.0]), torch.tensor([2.0, 5.0], dtype=torch.float64)
    for first in (1.0, 2.0):
        assert differs(torch.tensor([first, 5.0]), Goal(own, precise)) is None
    assert differs(torch.tensor([20.0, 5.0]), Goal(own, precise)) is not None


def test_an_inexact_reference_widens_only_the_budget_of_its_own_elements() -> None:
    precise = ones(10, dtype=torch.float64)
    own = changed(ones(10), 3, 1.001)
    assert differs(changed(ones(10), 3, 1.005), Goal(own, precise)) is None
    assert differs(changed(ones(10), 3, 1.02), Goal(own, precise)) is not None
    assert differs(changed(ones(10), 7, 1.005), Goal(own, precise)) is not None


def test_only_the_first_of_very_many_wrong_elements_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opwright.spec.difference._CHUNK_ELEMENTS", 10)
    monkeypatch.setattr("opwright.spec.difference._MOST_COUNTED", 15)
    difference = found(ones(100), 2 * ones(100))
    assert "more than 15 of 100 elements differ" in difference.got
    assert "2 of 100 elements differ" in found(changed(changed(ones(100), 3, 2.0), 97, 2.0), ones(100)).got


def test_an_author_may_widen_the_tolerance() -> None:
    allowed = {torch.float32: 0.5, torch.int32: 1.0}
    assert differs(ones(3) + 0.4, Goal(ones(3), ones(3)), allowed) is None
    assert differs(ones(3) + 0.6, Goal(ones(3), ones(3)), allowed) is not None
    whole = ones(3, dtype=torch.int32)
    assert differs(whole + 1, Goal(whole, whole), allowed) is None
    assert differs(whole + 2, Goal(whole, whole), allowed) is not None
    assert differs(whole.long() + 1, Goal(whole.long(), whole.long()), allowed) is not None


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.uint16, torch.bool, torch.float8_e5m2])
def test_integers_and_booleans_are_compared_exactly(dtype: torch.dtype) -> None:
    own = torch.tensor([1, 0, 1]).to(dtype)
    assert differs(own.clone(), Goal(own, own)) is None
    assert found(torch.tensor([1, 1, 1]).to(dtype), own).got.endswith(
        "1 of 3 elements differ, the largest difference is 1"
    )


def test_large_integers_are_distinguished() -> None:
    own = torch.tensor([2**60])
    assert differs(own + 1, Goal(own, own)) is not None


@pytest.mark.parametrize("number", [NAN, INF, -INF])
def test_nan_and_infinities_are_equal_only_to_themselves(number: float) -> None:
    own = torch.tensor([number, 1.0])
    assert differs(own.clone(), Goal(own, own.double())) is None
    for other in {NAN, INF, -INF, 0.0, 3.4e38} - {number}:
        assert differs(torch.tensor([other, 1.0]), Goal(own, own.double())) is not None


def test_an_infinity_does_not_widen_the_tolerance() -> None:
    own, precise = torch.tensor([INF, 1.0]), torch.tensor([1e39, 1.0], dtype=torch.float64)
    assert differs(torch.tensor([INF, 1.0]), Goal(own, precise)) is None
    assert differs(torch.tensor([INF, 1.1]), Goal(own, precise)) is not None


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_a_result_may_overflow_where_the_oracle_exceeds_the_dtype_or_comes_close(dtype: torch.dtype) -> None:
    info = torch.finfo(dtype)

    def is_right(result: float, precise: float, own: float) -> bool:
        goal = Goal(torch.tensor([own], dtype=dtype), torch.tensor([precise], dtype=torch.float64))
        return differs(torch.tensor([result], dtype=dtype), goal) is None

    assert not is_right(INF, info.max, own=info.max)
    assert not is_right(INF, info.max / 2, own=info.max / 2)
    if dtype != torch.float64:
        near = info.max * (1 - info.eps / 8)
        assert is_right(INF, near, own=info.max)
        assert not is_right(-INF, near, own=info.max)
        assert is_right(INF, 4 * info.max, own=INF)
        for wrong in (-INF, NAN, info.max):
            assert not is_right(wrong, 4 * info.max, own=INF)


def test_a_number_that_overflows_an_8_bit_float_is_nan() -> None:
    own, not_a_number, wrong = (torch.tensor([number]).to(torch.float8_e4m3fnuz) for number in (240.0, NAN, 1.0))
    goal = Goal(own, torch.tensor([1000.0], dtype=torch.float64))
    assert differs(not_a_number, goal) is None
    assert differs(wrong, goal) is not None


def test_a_wrong_number_is_reported_with_its_index_and_the_number_of_others() -> None:
    own = torch.arange(12.0).reshape(3, 4)
    wrong = changed(changed(own, 6, 60.0), 9, 10.0)
    difference = found(wrong, own)
    assert difference == Difference(
        "values",
        "float32 (3, 4), at [1, 2]: 60.0; 2 of 12 elements differ, the largest difference is 54",
        "at [1, 2]: 6.0",
    )
    assert found(changed(own, 0, NAN), own).got == "float32 (3, 4), at [0, 0]: nan; 1 of 12 elements differ"
    assert found(torch.tensor(2.0), torch.tensor(1.0)).expected == "at []: 1.0"


@pytest.mark.parametrize(
    ("size", "place", "sort"), [(100, 83, "values"), (100, 84, "tail"), (100, 99, "tail"), (32, 31, "values")]
)
def test_wrong_elements_only_at_the_end_of_a_large_tensor_are_a_tail(size: int, place: int, sort: str) -> None:
    assert found(changed(ones(size), place, 7), ones(size)).sort == sort


def test_all_elements_of_a_large_tensor_are_compared() -> None:
    own = torch.zeros(2**22 + 5, 2, dtype=torch.uint8)
    wrong = changed(changed(own, 2**22 - 1, 3), 2**23 + 9, 200)
    difference = found(wrong, own)
    assert "at [2097151, 1]: 3; 2 of 8388618 elements differ, the largest difference is 200" in difference.got
    assert found(changed(own, 2**23 + 9, 1), own).sort == "tail"


@pytest.mark.parametrize(
    ("result", "got"),
    [
        (ones(2, 3), "float32 (2, 3)"),
        (ones(6, dtype=torch.float64), "float64 (6,)"),
        (torch.ones(6, device="meta"), "float32 (6,) on meta"),
        (None, "None"),
        (2.0, "2.0"),
    ],
)
def test_a_different_shape_dtype_or_device_is_a_different_type(result: object, got: str) -> None:
    assert found(result, ones(6)) == Difference("type", got, "float32 (6,)")


def test_empty_results_are_compared_by_their_type() -> None:
    assert differs(ones(0, 3), Goal(ones(0, 3), ones(0, 3))) is None
    assert differs(ones(0, 3), Goal(ones(3, 0), ones(3, 0))) is not None


@pytest.mark.parametrize(
    "dtype",
    [
        torch.bool,
        torch.uint16,
        torch.int64,
        torch.bfloat16,
        torch.float64,
        torch.float8_e4m3fn,
        torch.float8_e8m0fnu,
        torch.complex64,
        torch.complex128,
    ],
)
@pytest.mark.parametrize("shape", [(), (0,), (3, 5), (2, 70)])
def test_the_results_of_the_reference_are_always_right(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    generator = torch.Generator().manual_seed(0)
    size = 1 if dtype is torch.bool else 255  # including infinities and NaN
    numbers = torch.randint(0, size + 1, (*shape, dtype.itemsize), dtype=torch.uint8, generator=generator)
    own = numbers.view(dtype).reshape(shape)
    every_second = torch.stack([own, own], -1)[..., 0]
    views = [own, own.mT, every_second, every_second.flatten()[:1]] if own.dim() == 2 else [own, every_second]
    for view in [*views, *(view.conj() for view in views if dtype.is_complex)]:
        assert differs(view.clone(), Goal(view, torch.zeros_like(view, dtype=torch.float64))) is None


# -- other results ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "own"), [(3, 3), ("a", "a"), (True, True), (2.5, 2.5 + 1e-7), (NAN, -NAN), (INF, INF), (7.0, None)]
)
def test_correct_results_that_are_not_tensors_are_accepted(result: object, own: object) -> None:
    assert differs(result, Goal(own, own)) is None


@pytest.mark.parametrize(
    ("result", "own"),
    [(3, 4), (10**9, 10**9 + 1), ("a", "b"), (2.5, 2.501), (NAN, 1.0), (1.0, NAN), (1e300, 2e300), (INF, -INF)],
)
def test_wrong_results_that_are_not_tensors_are_found(result: object, own: object) -> None:
    assert found(result, own) == Difference("values", repr(result), repr(own))


def test_an_inexact_reference_widens_the_tolerance_of_a_number() -> None:
    assert differs(1.005, Goal(1.001, 1.0)) is None
    assert differs(1.05, Goal(1.001, 1.0)) is not None
    assert differs(5.0, Goal(1.001, INF)) is not None


def test_values_have_short_descriptions() -> None:
    assert described(ones(16, 33, dtype=torch.bfloat16)) == "bfloat16 (16, 33)"
    assert described(torch.ones(1, device="meta")) == "float32 (1,) on meta"
    assert described([1, "a"]) == "[1, 'a']"
    assert first_line(ValueError("  one\ntwo")) == "ValueError: one"
    assert first_line(KeyError()) == "KeyError: "
