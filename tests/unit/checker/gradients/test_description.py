"""Tests of backwards in op.py that are not the derivative of the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from opwright.checker.kinds import Kind

if TYPE_CHECKING:
    from tests.unit.checker.gradients.conftest import Judge

BACKWARD = """
@f.backward(saves=("x",))
def f_backward(grad: Tensor, x: Tensor) -> Tensor:
    return {formula}
"""
SEVERAL = """
@f.backward(saves=("x", "y"))
def f_backward(
    grad_0: Tensor | None, grad_1: Tensor | None, x: Tensor, y: Tensor, wanted: Sequence[bool]
) -> tuple[Tensor, Tensor]:
    zero = torch.zeros_like(x)
    to_product, to_sum = (zero if grad is None else grad for grad in (grad_0, grad_1))
    return to_product * y.conj() + to_sum, to_product * {other}.conj() + to_sum
"""


@pytest.mark.parametrize(
    ("reference", "wrong", "right", "case"),
    [
        ("x * x", "grad * x", "2 * grad * x.conj()", "sample 1"),
        ("x.relu()", "grad * (x >= 0)", "grad * (x > 0)", "sample 1, x "),
    ],
)
def test_a_formula_that_is_not_the_derivative_is_a_fault_in_op_py(
    judge: Judge, reference: str, wrong: str, right: str, case: str
) -> None:
    (failure,) = judge(reference, "make.randn(4, 5)", further=BACKWARD.format(formula=wrong)).failures
    assert failure.kind is Kind.REFERENCE
    assert failure.case.startswith(case)
    assert failure.case.endswith(": the reference of f_backward")
    assert failure.got.startswith("the gradient of x that the reference of f_backward returns: float32 (4, 5), at [")
    assert failure.expected.startswith("the derivative of the reference of f: at [")
    assert judge(reference, "make.randn(4, 5)", further=BACKWARD.format(formula=right)).failures == ()


def test_the_formula_of_each_argument_is_compared(judge: Judge) -> None:
    given: dict[str, Any] = {"parameters": "x: Tensor, y: Tensor", "results": "tuple[Tensor, Tensor]"}
    samples = "make.randn(4, 5), make.randn(4, 5)"
    (failure,) = judge("(x * y, x + y)", samples, further=SEVERAL.format(other="y"), **given).failures
    assert failure.got.startswith("the gradient of y that the reference of f_backward returns: ")
    assert judge("(x * y, x + y)", samples, further=SEVERAL.format(other="x"), **given).failures == ()
