from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import opwright
from opwright.spec.expected import call_results, expected_gradients, expected_results

library = opwright.Library("answers")


@library.op
def tripled(x: Tensor) -> Tensor:
    return 3 * x


@library.op
def parted(x: Tensor) -> tuple[list[Tensor], Tensor]:
    return [x + 1, x + 2], x + 3


@library.op(mutates=("x",))
def grown(x: Tensor) -> None:
    x.add_(1)


@library.op
def narrow(x: Tensor) -> Tensor:
    if x.dtype != torch.float32:
        msg = "only float32"
        raise ValueError(msg)
    return x.sin()


def test_the_oracle_is_the_reference_in_float64() -> None:
    answer = expected_results(tripled, lambda: {"x": torch.tensor([0.1])})
    assert (answer.own[0].dtype, answer.precise[0].dtype) == (torch.float32, torch.float64)
    assert answer.difference([torch.tensor([0.3])]) is None
    wrong = answer.difference([torch.tensor([0.4])])
    assert wrong is not None
    assert wrong.got.startswith("float32 (1,), at [0]: 0.4")


def test_a_reference_without_float64_support_is_its_own_oracle() -> None:
    answer = expected_results(narrow, lambda: {"x": torch.ones(2)})
    assert answer.refusal == ""
    assert answer.precise[0].dtype == torch.float32
    refused = expected_results(narrow, lambda: {"x": torch.ones(2, dtype=torch.int32)})
    assert refused.refusal == "ValueError: only float32"


def test_mutated_arguments_are_expected_results_and_made_anew_for_each_call() -> None:
    answer = expected_results(grown, lambda: {"x": torch.ones(2)})
    assert [one.tolist() for one in (*answer.own, *answer.precise)] == [[2, 2], [2, 2]]
    x = torch.ones(2)
    assert call_results(grown, None, {"x": x}) == [x]


@pytest.mark.parametrize(
    ("results", "got"),
    [
        (lambda x: [[x + 1, x + 2], x + 4], "result 1: float32 (3,), at [0]"),
        (lambda x: [[x + 1, x + 5], x + 3], "result 0: float32 (3,), at [0]"),
        (lambda x: [[x + 1], x + 3], "result 0: 1 tensors"),
        (lambda x: [x + 3], "1 results"),
    ],
)
def test_a_difference_names_its_result(results: Any, got: str) -> None:
    x = torch.zeros(3)
    answer = expected_results(parted, lambda: {"x": x})
    found = answer.difference(results(x))
    assert found is not None
    assert found.got.startswith(got)
    assert answer.difference([[x + 1, x + 2], x + 3]) is None


def test_gradients_are_expected_in_both_dtypes() -> None:
    grads = expected_gradients(tripled, lambda: {"x": torch.ones(2)}, [torch.tensor([1.0, 0.5])], ["x"])
    own, precise = grads["x"].own, grads["x"].precise
    assert (own.dtype, precise.dtype) == (torch.float32, torch.float64)
    assert own.tolist() == precise.tolist() == [3, 1.5]


def test_gradients_of_a_reference_without_float64_support_are_in_its_dtype() -> None:
    goal = expected_gradients(narrow, lambda: {"x": torch.zeros(1)}, [torch.ones(1)], ["x"])["x"]
    own, precise = goal.own, goal.precise
    assert own is precise
    assert own.tolist() == [1]


@library.op
def squared_root(x: Tensor) -> Tensor:
    return (x * x).sqrt()


@library.op
def cancelled(x: Tensor) -> Tensor:
    return (x + 1e4) - 1e4


@library.op
def counted(x: Tensor) -> Tensor:
    return (x > 0).sum()


def accurate(op: Any, x: Tensor) -> bool:
    return expected_results(op, lambda: {"x": x}).is_accurate


@pytest.mark.parametrize("scale", [1.0, 1e-15, 1e15])
def test_a_reference_that_rounds_is_accurate(scale: float) -> None:
    assert accurate(squared_root, scale * torch.randn(40))


def test_a_reference_that_overflows_where_float64_does_not_is_inaccurate() -> None:
    assert not accurate(squared_root, torch.tensor([1.0, 1e30]))


def test_a_reference_that_underflows_in_most_elements_is_inaccurate() -> None:
    x = torch.full((40,), 1e-30)
    assert not accurate(squared_root, x)
    x[:38] = 1.0
    assert accurate(squared_root, x)


def test_a_reference_that_cancels_is_inaccurate() -> None:
    assert accurate(cancelled, torch.full((4,), 100.0))
    assert not accurate(cancelled, torch.full((4,), 1e-4))


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_special_values_that_float64_has_too_are_accurate(number: float) -> None:
    assert accurate(tripled, torch.tensor([1.0, number]))


def test_integers_and_empty_results_are_accurate() -> None:
    assert accurate(counted, torch.randn(4))
    assert accurate(tripled, torch.empty(0))


@pytest.mark.parametrize(
    ("error", "unknown"),
    [
        ('NotImplementedError("no kernel")', True),
        ("RuntimeError('\"erf_cpu\" not implemented for Int')", True),
        ('ValueError("x has to be positive")', False),
        ('RuntimeError("sizes differ")', False),
    ],
)
def test_only_a_kernel_that_pytorch_lacks_leaves_a_call_unknown(error: str, unknown: bool) -> None:
    scope: dict[str, Any] = {"Tensor": Tensor}
    exec(f"def f(x: Tensor) -> Tensor:\n    raise {error}", scope)
    found = expected_results(opwright.Library("unknown").op(scope["f"]), lambda: {"x": torch.ones(2)})
    assert found.refusal
    assert found.unknown == unknown


def test_a_kernel_that_pytorch_lacks_is_recognized() -> None:
    found = expected_results(narrow, lambda: {"x": torch.ones(2, dtype=torch.int32)})
    assert not found.unknown
    eight_bits = expected_results(squared_root, lambda: {"x": torch.ones(2).to(torch.float8_e4m3fn)})
    assert eight_bits.unknown


@library.op
def normal(x: Tensor) -> Tensor:
    return torch.nn.functional.gelu(x)


def test_where_float64_cancels_to_zero_a_smaller_number_is_right() -> None:
    x = torch.tensor([-9.0, 1.0])
    answer = expected_results(normal, lambda: {"x": x})
    assert answer.precise[0][0] == 0
    right = 0.5 * x * torch.erfc(-x / 2**0.5)
    assert right[0] != 0
    assert answer.difference([right]) is None
    for wrong in (-1e-10, 1e-3, float("nan")):
        assert answer.difference([torch.tensor([wrong, right[1]])]) is not None


@library.op
def softplus(x: Tensor) -> Tensor:
    return x.exp().log1p()


def test_an_oracle_that_overflows_is_not_finite() -> None:
    assert expected_results(softplus, lambda: {"x": torch.randn(4)}).is_finite
    assert not expected_results(softplus, lambda: {"x": torch.tensor([1.0, 1e4])}).is_finite
    assert expected_results(softplus, lambda: {"x": torch.tensor([1.0, 100.0])}).is_finite
