from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Optional

import pytest
import torch
from torch import Tensor

import opwright
from opwright.builder.definitions import source_text
from opwright.spec import Library, Make, Op
from tests.unit.spec.conftest import raises


def described(**options: Any) -> Op:
    def gated(x: Tensor, y: Tensor) -> Tensor:
        return x.tanh() * y

    return opwright.Library("mine").op(**options)(gated)


def gated_with_gate(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return x.tanh() * y, x.tanh()


def backward(
    grad_0: Optional[Tensor],
    grad_1: Optional[Tensor],
    y: Tensor,
    result_1: Tensor,
    wanted: Sequence[bool],
) -> tuple[Tensor, Tensor]:
    raise NotImplementedError


def test_autograd_records_the_training_form_once_it_has_a_native_backward() -> None:
    op = described()
    form = op.for_training(gated_with_gate)
    assert op.training_form is form
    assert op.library.ops["gated_with_gate"] is form
    assert op.recorded is op  # its derived gradient would need no more than the operator's own
    assert op.gradient is None
    native = form.backward(backward, saves=("y", "result_1"))
    assert op.recorded is form
    assert op.gradient is not None
    assert (op.gradient.forward, op.gradient.op) == (form, native)
    assert form.recorded is form


def test_the_definitions_list_the_training_form_for_the_bridge() -> None:
    op = described()
    op.for_training(gated_with_gate).backward(backward, saves=("y", "result_1"))
    assert isinstance(op.library, Library)
    text = source_text(op.library)
    assert r'"mine::gated mine::gated_with_gate mine::gated_with_gate_backward 0,1 1,r1 1\n"' in text
    assert r'"mine::gated_with_gate mine::gated_with_gate mine::gated_with_gate_backward 0,1 1,r1 1\n"' in text


def test_a_training_form_claims_what_its_operator_claims() -> None:
    op = described(differentiable=("y",), vmap=True, tolerance={torch.float32: 0.5})
    form = op.for_training(gated_with_gate)
    assert not form.has_samples

    @op.samples(dtypes=(torch.float64,))
    def _(make: Make) -> Iterator[Any]:
        yield make.randn(3), make.randn(3)

    assert form.has_samples
    assert form.dtypes == (torch.float64,)
    assert [tuple(argument.shape) for argument in next(form.draw(Make())).args] == [(3,), (3,)]
    assert (form.differentiable, form.claims_vmap, form.tolerance) == (("y",), True, {torch.float32: 0.5})


def test_a_training_form_with_wrong_parameters_is_rejected() -> None:
    def wrong(x: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        return x, z

    with raises(
        "mine::wrong must have the parameters of mine::gated, which it replaces:\n"
        "  gated(Tensor x, Tensor y) -> Tensor\n  wrong(Tensor x, Tensor z) -> (Tensor, Tensor)"
    ):
        described().for_training(wrong)


def no_more(x: Tensor, y: Tensor) -> Tensor:
    return x * y


def a_list(x: Tensor, y: Tensor) -> tuple[Tensor, list[Tensor]]:
    return x, [y]


@pytest.mark.parametrize("reference", [no_more, a_list])
def test_a_training_form_with_wrong_results_is_rejected(reference: Any) -> None:
    op = described()
    with raises(
        f"mine::{reference.__name__} must return the results of mine::gated, followed by the tensors that its backward "
        "needs:\n  gated(Tensor x, Tensor y) -> Tensor\n"
    ):
        op.for_training(reference)
    assert list(op.library.ops) == ["gated"]


def test_a_second_training_form_is_rejected() -> None:
    op = described()
    op.for_training(gated_with_gate)
    with raises("mine::gated already has a training form, mine::gated_with_gate: keep one of the two"):
        op.for_training(gated_with_gate)


def test_an_operator_with_a_backward_or_a_mutated_argument_cannot_have_a_training_form() -> None:
    op = described()
    op.backward()
    with raises("mine::gated itself has a backward, gated_backward, so it cannot have a training form"):
        op.for_training(gated_with_gate)
    with raises("mine::gated mutates x, so it cannot have a training form: remove one of the two"):
        described(mutates=("x",)).for_training(gated_with_gate)


def test_an_operator_whose_training_form_has_a_backward_cannot_have_another_backward() -> None:
    op = described()
    op.for_training(gated_with_gate).backward(backward, saves=("y", "result_1"))
    with raises("mine::gated already has a backward, mine::gated_with_gate_backward: keep one of the two"):
        op.backward()


def test_the_backward_of_a_training_form_declares_gradients_for_the_operator() -> None:
    op = described()
    form = op.for_training(gated_with_gate)

    @form.backward(saves=("result_1",), differentiable=("y",))
    def gated_with_gate_backward(grad_0: Optional[Tensor], grad_1: Optional[Tensor], result_1: Tensor) -> Tensor:
        raise NotImplementedError

    assert op.differentiable == form.differentiable == ("y",)
    declared = described(differentiable=("x",)).for_training(gated_with_gate)
    with raises("mine::gated is declared with differentiable=('x',), its backward with differentiable=('y',)"):
        declared.backward(differentiable=("y",))
