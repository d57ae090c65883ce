"""Tests of faults in second derivatives of an operator that supports only float32."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from opwright.checker.gradients import second
from opwright.checker.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.checker.gradients.conftest import Judge


def only_float32(x: Tensor) -> None:
    if x.dtype != torch.float32:
        msg = f"x must be float32, got {x.dtype}"
        raise TypeError(msg)


def cube(backward: Callable[..., Any]) -> Callable[..., Any]:
    """`x**3 * y` in float32 only; `backward` receives the context and the incoming gradient."""

    class _Cube(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
            only_float32(x)
            ctx.save_for_backward(x, y)
            return x**3 * y

    _Cube.backward = staticmethod(backward)  # type: ignore[method-assign]
    return _Cube.apply


def right(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
    x, y = ctx.saved_tensors
    return 3 * g * x * x * y, g * x**3


def detached(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
    x, y = ctx.saved_tensors
    return 3 * g * x * x.detach() * y, g * x**3


def constant(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
    with torch.no_grad():
        return right(ctx, g)


def refusing(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
    return right(ctx, g)


def broken(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
    if torch.is_grad_enabled():
        msg = "a size is 7"
        raise RuntimeError(msg)
    return right(ctx, g)


CALL: dict[str, Any] = {
    "reference": "x**3 * y",
    "samples": "make.randn(4, 5), make.randn(4, 5)",
    "parameters": "x: Tensor, y: Tensor",
}


def test_a_correct_second_derivative_passes(judge: Judge) -> None:
    passed = judge(kernel=cube(right), **CALL)
    assert passed.failures == ()
    assert passed.reason.startswith(
        "it does not accept float64: first gradients are compared only with the reference's"
    )


@pytest.mark.parametrize(
    ("backward", "kind", "got"),
    [
        (detached, Kind.WRONG_GRADIENT, "the second derivative by x: float32 (4, 5), at [0, 0]: "),
        (constant, Kind.MISSING_GRADIENT, "the second derivative by x: none"),
        (broken, Kind.RAISES, "RuntimeError: a size is 7"),
    ],
)
def test_a_wrong_second_derivative_is_found(judge: Judge, backward: Any, kind: Kind, got: str) -> None:
    (failure,) = judge(kernel=cube(backward), **CALL).failures
    assert failure.kind is kind
    assert failure.case == "sample 1: second derivatives"
    assert failure.got.startswith(got)


@pytest.mark.parametrize("backward", [detached, constant])
def test_finite_differences_alone_find_a_wrong_second_derivative(
    judge: Judge, backward: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(second, "_compared", lambda *given: None)
    (failure,) = judge(kernel=cube(backward), **CALL).failures
    assert failure.kind is Kind.WRONG_GRADIENT
    assert failure.got.startswith("second derivatives that predict a change of the first ones by ")
    assert failure.expected.startswith("finite differences: ")
    assert judge(kernel=cube(right), **CALL).failures == ()


def test_a_reference_without_float64_has_a_note(judge: Judge) -> None:
    call = {**CALL, "reference": "x**3 * y if x.element_size() == 4 else missing"}
    passed = judge(kernel=cube(right), **call)
    assert passed.failures == ()
    assert (
        "second derivatives are not compared with finite differences: the reference does not support float64 "
        "(NameError: name 'missing' is not defined)"
    ) in passed.reason


def test_results_whose_sizes_change_with_the_differences_are_not_a_fault(judge: Judge) -> None:
    def positive(x: Tensor, y: Tensor) -> Tensor:
        powers: Tensor = cube(right)(x, y)
        return powers[x >= 0]

    call = {**CALL, "reference": "(x**3 * y)[x >= 0]", "samples": "torch.zeros(20), make.randn(20)"}
    assert judge(kernel=positive, **call).failures == ()


def test_no_point_of_finite_differences_is_outside_the_domain(judge: Judge) -> None:
    def positive(x: Tensor, y: Tensor) -> Tensor:
        if bool((x < 0).any()):
            msg = "x must not be negative"
            raise ValueError(msg)
        passed: Tensor = cube(right)(x, y)
        return passed

    domain = "\n@f.domain\ndef _(x, y):\n    return bool((x >= 0).all())\n"
    call = {**CALL, "samples": "make.randn(4, 5).relu(), make.randn(4, 5)", "further": domain}
    assert judge(kernel=positive, **call).failures == ()


def test_an_operator_that_rejects_second_derivatives_has_a_note(judge: Judge) -> None:
    passed = judge(kernel=cube(once_differentiable(refusing)), **CALL)
    assert passed.failures == ()
    assert "it has no second derivatives, and raises an error when they are requested (RuntimeError: " in passed.reason


RIGHT = {
    "x * x.sin()": "make.randn(20)",
    "x.relu() * x": "make.randn(20)",
    "(x * x).sum(-1).sqrt()": "make.randn(4, 5)",
    "x.softmax(-1)": "make.randn(4, 5)",
    "(x.abs() + 1).log() * x.exp()": "make.randn(20)",
    "x.sort(-1).values ** 2": "make.randn(3, 8)",
    "(x @ x.t()).tanh()": "make.randn(4, 4)",
    "torch.complex(x, x * x) * 1j": "make.randn(6)",
}


@pytest.mark.sample(3)
@pytest.mark.sample(6)
@pytest.mark.parametrize("reference", RIGHT)
def test_correct_second_derivatives_are_never_reported(judge: Judge, reference: str) -> None:
    def kernel(x: Tensor) -> Any:
        only_float32(x)
        return eval(reference, {"torch": torch, "x": x})

    for seed in range(5):
        assert judge(reference, RIGHT[reference], kernel, seed=seed).failures == ()
