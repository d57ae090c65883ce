"""Tests of finite differences in float64: the faults that they find, and where they prove nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd import Function

from opwright.checker.cases.case import Case, Family
from opwright.checker.gradients import numeric
from opwright.checker.kinds import Kind
from opwright.checker.recorder import Recorder
from tests.unit.checker.conftest import MakeSubject, operator

if TYPE_CHECKING:
    from opwright.checker.verdict import Cell


def checked(make_subject: MakeSubject, reference: str, kernel: Any, x: str = "[0.5, -2.0]") -> Cell:
    subject = make_subject(operator("x: Tensor", reference, f"torch.tensor({x})"))
    subject.overload = kernel
    recorder = Recorder("f", "autograd", "cpu", lambda event: None)
    case = numeric.smallest_in_float64(subject, recorder)
    assert case is not None
    numeric.check_numerically(subject, recorder, case, twice=False)
    return recorder.cell()


class _Square(Function):
    factor = 2.0

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        if _Square.factor == 0.0:
            return ctx.saved_tensors[1]
        return _Square.factor * g * x


class _OnlyFloat32Backward(_Square):
    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        if g.dtype != torch.float32:
            msg = "the backward requires float32"
            raise ValueError(msg)
        return _Square.backward(ctx, g)


def test_a_derivative_that_finite_differences_contradict_is_a_wrong_gradient(
    make_subject: MakeSubject, monkeypatch: Any
) -> None:
    assert checked(make_subject, "x * x", _Square.apply).status == "passed"
    monkeypatch.setattr(_Square, "factor", 3.0)
    (failure,) = checked(make_subject, "x * x", _Square.apply).failures
    assert failure.kind is Kind.WRONG_GRADIENT
    assert failure.got.startswith("GradcheckError: Jacobian mismatch")
    assert failure.expected == "the finite differences"


def test_a_backward_that_raises_is_not_a_wrong_gradient(make_subject: MakeSubject, monkeypatch: Any) -> None:
    monkeypatch.setattr(_Square, "factor", 0.0)
    (failure,) = checked(make_subject, "x * x", _Square.apply, "[0.5, -2.0], dtype=torch.float64").failures
    assert (failure.kind, failure.got) == (Kind.RAISES, "IndexError: tuple index out of range")
    assert failure.expected == "a gradient"


def test_finite_differences_prove_nothing_at_a_kink(make_subject: MakeSubject) -> None:
    cell = checked(make_subject, "x.relu()", torch.relu, "[0.0, -2.0]")
    assert cell.failures == ()
    assert "torch.autograd.gradcheck fails for the reference too: GradcheckError: Jacobian mismatch" in cell.reason


def test_a_reference_that_rejects_nearby_values_is_not_a_fault_of_the_operator(make_subject: MakeSubject) -> None:
    reference = "x[:, None][torch.arange(2), (x != 0.5).long() * 0 + (x.detach() - x.detach().round(decimals=3) != 0)]"
    cell = checked(make_subject, f"{reference}.clone()", lambda x: eval(reference, {"torch": torch, "x": x}).clone())
    assert cell.failures == ()
    assert "fails for the reference too: IndexError" in cell.reason


def test_a_backward_that_rejects_unclaimed_float64_is_not_a_fault(make_subject: MakeSubject) -> None:
    cell = checked(make_subject, "x * x", _OnlyFloat32Backward.apply)
    assert cell.failures == ()
    assert (
        "torch.autograd.gradcheck was skipped, because float64 is rejected: ValueError: the backward requires float32"
        in cell.reason
    )


def test_a_backward_that_rejects_float64_of_a_sample_is_a_fault(make_subject: MakeSubject) -> None:
    (failure,) = checked(make_subject, "x * x", _OnlyFloat32Backward.apply, "[0.5], dtype=torch.float64").failures
    assert (failure.kind, failure.got) == (Kind.RAISES, "ValueError: the backward requires float32")


def test_no_point_of_finite_differences_is_outside_the_domain(make_subject: MakeSubject) -> None:
    def positive(x: Tensor) -> Tensor:
        if bool((x < 0).any()):
            msg = "x must not be negative"
            raise ValueError(msg)
        return x * x

    domain = "\n\n@f.domain\ndef _(x):\n    return bool((x >= 0).all())\n"
    subject = make_subject(operator("x: Tensor", "x * x", "torch.tensor([0.0, 2.0])") + domain)
    subject.overload = positive
    recorder = Recorder("f", "autograd", "cpu", lambda event: None)
    case = Case("sample 1 in float64", Family.DTYPE, {"x": torch.tensor([0.0, 2.0], dtype=torch.float64)})
    numeric.check_numerically(subject, recorder, case, twice=False)
    found = recorder.cell()
    assert found.failures == ()
    assert "finite differences move the arguments out of the domain in op.py" in found.reason
