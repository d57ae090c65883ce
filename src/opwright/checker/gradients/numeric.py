"""Compares gradients with finite differences in float64: PyTorch's gradcheck and gradgradcheck."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd.gradcheck import GradcheckError
from torch.utils import _pytree as pytree

from opwright.checker.cases.case import Case, Family
from opwright.checker.gradients.code import gradient_code
from opwright.checker.kinds import Kind
from opwright.checker.verdict import Failure
from opwright.spec import derive
from opwright.spec.difference import first_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject

    Call = Callable[[dict[str, Any]], list[Any]]
    Check = Callable[..., bool]

# Finite differences call the operator twice per element: with more elements than this, directions are sampled.
_EVERY_NUMBER = 64
_MOST_NUMBERS = 4096
_WIDE = {torch.float64, torch.complex128}


def smallest_in_float64(subject: Subject, recorder: Recorder) -> Case | None:
    """Return the smallest call in float64 that the operator accepts."""
    cases = [*subject.samples, *(case for case in subject.varied if case.family is Family.SIZE)]
    cases = [case for case in cases if any(tensor.numel() for tensor in derive.tensors(case.arguments))]
    cases.sort(key=lambda case: sum(tensor.numel() for tensor in derive.tensors(case.arguments)))
    for case in cases:
        in_float64 = Case(f"{case.name} in float64", Family.DTYPE, pytree.tree_map(derive.widened, case.arguments))
        if not subject.differentiable(in_float64):
            continue
        if not recorder.begin(in_float64.name, subject.code(in_float64), group=case.group):
            continue
        try:
            subject.call(in_float64.fresh())
        except Exception:
            continue
        return in_float64
    return None


def check_numerically(subject: Subject, recorder: Recorder, case: Case, *, twice: bool) -> None:
    """Compare the first derivatives of `case` with finite differences, and with `twice` also the second ones.

    Finite differences prove nothing at a kink, or if they move arguments out of the domain. So if the operator fails,
    the reference is checked too, and a failure of both is not a fault.
    """
    point = _Point(subject, case)
    if not point.leaves or point.numbers > _MOST_NUMBERS:
        recorder.note("no sample is small enough for finite differences")
        return
    checks: dict[str, Check] = {"gradcheck": torch.autograd.gradcheck, "gradgradcheck": torch.autograd.gradgradcheck}
    for what in checks if twice else ["gradcheck"]:
        step = f"{case.name}: torch.autograd.{what}"
        code = gradient_code(subject, case, point.names)
        if not recorder.begin(step, code):
            continue
        error = point.error(checks[what], subject.call)
        if error is None:
            recorder.ok()
        elif point.error(checks[what], point.reference) is not None:
            recorder.note(f"torch.autograd.{what} fails for the reference too: {first_line(error)}")
        elif not (isinstance(error, GradcheckError) or _claims_float64(subject)):
            recorder.note(f"torch.autograd.{what} was skipped, because float64 is rejected: {first_line(error)}")
        else:
            is_wrong = isinstance(error, GradcheckError)
            kind, expected = (
                (Kind.WRONG_GRADIENT, "the finite differences") if is_wrong else (Kind.RAISES, "a gradient")
            )
            got, detail = first_line(error), str(error)[:2000]
            recorder.fail(Failure(kind, step, code, got=got, expected=expected, detail=detail))


def _claims_float64(subject: Subject) -> bool:
    """Whether the operator must accept float64: `dtypes=` lists it, or a sample uses no narrower dtype."""
    found = (
        {one.dtype for one in derive.tensors(case.arguments) if derive.has_gradient(one)} for case in subject.samples
    )
    return torch.float64 in subject.op.dtypes or any(dtypes and dtypes <= _WIDE for dtypes in found)


class _Point:
    """The point at which derivatives are computed.

    Attributes:
        names: the differentiable arguments.
        leaves: the floating-point tensors of these, which require gradients.
        numbers: the total number of elements of the leaves.
    """

    def __init__(self, subject: Subject, case: Case) -> None:
        self._subject = subject
        self._arguments = case.fresh()
        self.names = subject.differentiable(case)
        self._flat, self._shape = pytree.tree_flatten([self._arguments[name] for name in self.names])
        self.leaves = tuple(leaf.requires_grad_() for leaf in self._flat if derive.has_gradient(leaf))
        self.numbers = sum(leaf.numel() for leaf in self.leaves)

    def reference(self, given: dict[str, Any]) -> list[Any]:
        """Call the reference in the way that `Subject.call` calls the operator."""
        positional, keywords = self._subject.op.spread(given)
        return self._subject.outcome(self._subject.op.reference(*positional, **keywords), given)

    def error(self, check: Check, call: Call) -> Exception | None:
        """How the derivatives of `call` differ from finite differences, or what it raises; None if they agree."""

        def function(*leaves: Tensor) -> tuple[Tensor, ...]:
            moved = iter(leaves)
            filled = [next(moved) if derive.has_gradient(leaf) else leaf for leaf in self._flat]
            given = {
                **self._arguments,
                **dict(zip(self.names, pytree.tree_unflatten(filled, self._shape), strict=True)),
            }
            here = pytree.tree_map_only(Tensor, Tensor.detach, given)
            if self._subject.is_outside(Case("a point of finite differences", Family.DTYPE, here)):
                msg = "finite differences move the arguments out of the domain in op.py"
                raise ValueError(msg)
            return tuple(filter(derive.has_gradient, derive.tensors(call(given))))

        try:
            check(function, self.leaves, fast_mode=self.numbers > _EVERY_NUMBER)
        except Exception as error:
            return error
        return None
