from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from tests.unit.spec.conftest import described, raises

if TYPE_CHECKING:
    from opwright.spec import Op


def gather(x: Tensor, index: Tensor) -> Tensor:
    return x[index]


def with_domain() -> Op:
    op = described(gather)

    @op.domain
    def _(x: Tensor, index: Tensor) -> bool:
        return bool(((index >= 0) & (index < x.shape[0])).all())

    return op


def call(*index: int) -> dict[str, Any]:
    return {"x": torch.ones(3, 2), "index": torch.tensor(index)}


def test_an_operator_without_a_domain_is_defined_everywhere() -> None:
    op = described(gather)
    assert not op.has_domain
    assert op.why_outside(call(9)) == ""


def test_the_domain_decides_which_calls_are_inside() -> None:
    op = with_domain()
    assert op.has_domain
    assert op.why_outside(call(0, 2)) == ""
    assert op.why_outside(call(0, 3)) == "its @domain function returns False"
    scalar = {"x": torch.tensor(1.0), "index": torch.tensor([0])}
    assert op.why_outside(scalar) == "its @domain function raises IndexError: tuple index out of range"


def test_a_domain_with_wrong_parameters_is_rejected() -> None:
    with raises("the domain of mine::gather must have the operator's parameters, (x, index), but has (indices)"):
        described(gather).domain(lambda indices: True)


def test_a_training_form_has_the_domain_of_its_operator() -> None:
    form = with_domain().for_training(gather_and_index)
    assert form.has_domain
    assert form.why_outside(call(3)) == "its @domain function returns False"


def gather_and_index(x: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    return x[index], index + 0


def test_a_backward_that_saves_all_arguments_has_the_domain_of_its_operator() -> None:
    backward = with_domain().backward()
    assert backward.has_domain
    assert backward.why_outside({"grad": torch.ones(1, 2), **call(2)}) == ""
    assert backward.why_outside({"grad": torch.ones(1, 2), **call(3)}) == "its @domain function returns False"


def test_a_backward_that_saves_less_must_state_its_own_domain() -> None:
    @with_domain().backward(saves=("index",), differentiable=("x",))
    def gather_backward(grad: Tensor, index: Tensor) -> Tensor:
        return grad[index]

    given = {"grad": torch.ones(3, 2), "index": torch.tensor([0])}
    reason = "the domain of gather requires x, which is not saved: state it with @gather_backward.domain"
    assert gather_backward.why_outside(given) == reason
    gather_backward.domain(lambda grad, index: len(grad) == 3)
    assert gather_backward.why_outside(given) == ""
