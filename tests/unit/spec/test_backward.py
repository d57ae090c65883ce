from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from typing import Any, Optional

import pytest
import torch
from torch import Tensor

from opwright.builder.definitions import source_text
from opwright.spec import Library, Make
from tests.unit.spec.conftest import described, raises


def scale(x: Tensor, factor: float = 2.0) -> Tensor:
    return x * factor


def mul(x: Tensor, y: Tensor) -> Tensor:
    return x * y


def everything(
    parts: Sequence[Tensor],
    maybe: Sequence[Optional[Tensor]],
    bias: Optional[Tensor],
    sizes: Sequence[int],
    *,
    mode: str = "plus",
    dtype: Optional[torch.dtype] = None,
) -> tuple[Tensor, Tensor]:
    raise NotImplementedError


def named(grad: Tensor, wanted: Tensor, result: Tensor) -> Tensor:
    return grad * wanted * result


def listed(x: Tensor) -> list[Tensor]:
    return [x]


def fill(x: Tensor) -> None:
    x.fill_(1)


EVERYTHING = (
    "everything_backward(Tensor? grad_0, Tensor? grad_1, Tensor[] parts, Tensor?[] maybe, Tensor? bias, "
    "SymInt[] sizes, str mode, ScalarType? dtype, bool[] wanted) -> (Tensor[], Tensor[], Tensor)"
)
NAMED = (
    "named_backward(Tensor grad_grad, Tensor grad, Tensor wanted, Tensor result, bool[] grad_wanted) -> "
    "(Tensor, Tensor, Tensor)"
)


@pytest.mark.parametrize(
    ("reference", "schema"),
    [
        (scale, "scale_backward(Tensor grad, Tensor x, float factor) -> Tensor"),
        (mul, "mul_backward(Tensor grad, Tensor x, Tensor y, bool[] wanted) -> (Tensor, Tensor)"),
        (everything, EVERYTHING),
        (named, NAMED),
    ],
)
def test_the_schema_of_a_backward_is_derived_from_the_forward(reference: Any, schema: str) -> None:
    forward = described(reference)
    backward = forward.backward()
    assert backward.schema == schema
    assert [parameter.name for parameter in backward.parameters] == list(
        inspect.signature(backward.reference).parameters
    )
    assert forward.library.ops[backward.name] is backward
    assert not backward.has_own_reference


def test_a_backward_can_have_a_backward() -> None:
    second = described(mul).backward().backward()
    assert second.schema == (
        "mul_backward_backward(Tensor? grad_0, Tensor? grad_1, Tensor grad, Tensor x, Tensor y, bool[] wanted, "
        "bool[] grad_wanted) -> (Tensor, Tensor, Tensor)"
    )


def test_only_differentiable_arguments_have_a_gradient() -> None:
    forward = described(mul, differentiable=("y",))
    assert forward.backward().schema == "mul_backward(Tensor grad, Tensor x, Tensor y) -> Tensor"


def test_a_backward_may_declare_which_gradients_it_computes() -> None:
    forward = described(mul)
    _ = forward.differentiable  # read before the declaration, because it is cached

    @forward.backward(saves=("x",), differentiable=("y",))
    def mul_backward(grad: Tensor, x: Tensor) -> Tensor:
        return grad * x

    assert forward.differentiable == ("y",)
    assert forward.gradient is not None
    assert not forward.gradient.takes_wanted
    derived = described(mul, differentiable=("y",)).backward(differentiable=("y",))
    assert derived.schema == "mul_backward(Tensor grad, Tensor x, Tensor y) -> Tensor"


@pytest.mark.parametrize(
    ("declared", "names", "message"),
    [
        (("x",), ("y",), "mine::mul is declared with differentiable=('x',), its backward with differentiable=('y',)"),
        (None, ("z",), "differentiable='z' of mine::mul is not a tensor argument: expected some of x, y"),
        (None, "y", "differentiable='y' of mine::mul is one string; write a tuple: ('y',)"),
        (None, (), "mine::mul has no differentiable argument, so it cannot have a backward: remove it"),
    ],
)
def test_an_invalid_declaration_is_rejected(declared: Any, names: Any, message: str) -> None:
    with raises(message):
        described(mul, differentiable=declared).backward(differentiable=names)


def test_a_backward_with_its_own_reference_may_save_less() -> None:
    forward = described(scale)

    @forward.backward(saves=("result", "factor"))
    def scale_backward(grad: Tensor, result: Tensor, factor: float) -> Tensor:
        return grad * factor

    assert forward.gradient is not None
    assert forward.gradient.op is scale_backward
    assert forward.gradient.saves == ("result", "factor")
    assert forward.gradient.result_names == ["result"]
    assert not forward.gradient.takes_wanted
    assert scale_backward.schema == "scale_backward(Tensor grad, Tensor result, float factor) -> Tensor"
    assert scale_backward.has_own_reference
    assert scale_backward(torch.ones(2), torch.ones(2), 3.0).tolist() == [3, 3]


def test_a_backward_with_its_own_reference_saves_all_arguments_by_default() -> None:
    forward = described(scale)

    @forward.backward
    def anything(grad: Tensor, x: Tensor, factor: float) -> Tensor:
        return grad * factor

    assert anything.name == "scale_backward"
    assert "scale_backward" in forward.library.ops


def test_the_samples_of_a_backward_are_those_of_its_forward() -> None:
    forward = described(mul)
    backward = forward.backward()
    assert not backward.has_samples

    @forward.samples
    def _(make: Make) -> Iterator[Any]:
        yield make.randn(3), make.randn(3)

    assert backward.has_samples
    (sample,) = backward.draw(Make())
    assert [tuple(argument.shape) for argument in sample.args[:3]] == [(3,), (3,), (3,)]

    @backward.samples
    def _(make: Make) -> Iterator[Any]:
        yield make.randn(1), make.randn(1), make.randn(1), [True, True]

    assert len(list(backward.draw(Make()))) == 1


def test_the_derived_reference_computes_the_requested_gradients() -> None:
    backward = described(mul).backward()
    grad, x, y = torch.randn(3), torch.randn(3), torch.randn(3)
    of_x, of_y = backward(grad, x, y, wanted=[True, False])
    assert torch.equal(of_x, grad * y)
    assert of_y is None
    of_x, of_y = backward(grad, x, y, [False, True])
    assert of_x is None
    assert torch.equal(of_y, grad * x)


def test_the_definitions_list_the_gradient_operators_for_the_bridge() -> None:
    forward = described(everything, differentiable=("maybe", "bias"))

    @forward.backward(saves=("bias", "result_1"))
    def backward(
        grad_0: Optional[Tensor],
        grad_1: Optional[Tensor],
        bias: Optional[Tensor],
        result_1: Tensor,
        wanted: Sequence[bool],
    ) -> tuple[list[Tensor], Tensor]:
        raise NotImplementedError

    library = forward.library
    assert isinstance(library, Library)

    @library.op
    def negate(x: Tensor) -> Tensor:
        return -x

    @negate.backward(saves=())
    def negate_backward(grad: Tensor) -> Tensor:
        return -grad

    text = source_text(library)
    assert r'"mine::everything mine::everything mine::everything_backward 1,2 2,r1 1\n"' in text
    assert r'"mine::negate mine::negate mine::negate_backward 0 - 0\n"' in text
    without = described(scale).library
    assert isinstance(without, Library)
    assert "opwright_gradients" not in source_text(without)


def test_one_string_is_not_a_list_of_names() -> None:
    with raises("saves='x' of mine::scale is one string; write a tuple: saves=('x',)"):
        described(scale).backward(saves="x")


def test_an_unknown_name_cannot_be_saved() -> None:
    with raises("the backward of mine::scale saves 'result_0': expected names among result, x, factor"):
        described(scale).backward(saves=("result_0",))
    with raises("saves 'result': expected names among result_0, result_1, parts, maybe, bias, sizes, mode, dtype"):
        described(everything).backward(saves=("result",))


def test_a_second_backward_is_rejected() -> None:
    forward = described(scale)
    forward.backward()
    with raises("mine::scale already has a backward, mine::scale_backward: keep one of the two"):
        forward.backward()


def test_an_operator_that_mutates_cannot_have_a_backward() -> None:
    with raises("mine::fill mutates x, so it has no gradient: return a new tensor instead"):
        described(fill, mutates=("x",)).backward()


def test_a_backward_has_no_gradient_for_arguments_without_one_in_the_forward() -> None:
    def mul_backward(grad: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return grad * y

    backward = described(mul, differentiable=("x",)).backward(saves=("x", "y"))(mul_backward)
    assert backward.differentiable == ("grad", "x")
    assert described(mul).backward().differentiable == ("grad", "x", "y")
    declared = described(mul, differentiable=("x",)).backward()
    declared.declare_differentiable(("y",))
    assert declared.differentiable == ("y",)


def test_an_operator_with_a_list_result_cannot_have_a_native_backward() -> None:
    with raises(
        "mine::listed returns (List[Tensor]); a native backward requires that all results are tensors. "
        "Remove the backward: the gradient is then derived from the reference"
    ):
        described(listed).backward()


def test_a_backward_with_wrong_parameters_is_rejected() -> None:
    def wrong(grad: Tensor, factor: float) -> Tensor:
        return grad * factor

    with raises(
        "the backward mine::scale_backward must have parameters (Tensor grad, Tensor x, float factor), but has "
        "(Tensor grad, float factor) -> Tensor"
    ):
        described(scale).backward(wrong)


def test_a_backward_with_wrong_results_is_rejected() -> None:
    def wrong(grad: Tensor, x: Tensor, factor: float) -> tuple[Tensor, Tensor]:
        return grad * factor, x

    with raises("the backward mine::scale_backward must return Tensor, but returns (Tensor, Tensor)"):
        described(scale).backward(wrong)
