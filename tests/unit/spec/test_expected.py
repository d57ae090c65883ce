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
