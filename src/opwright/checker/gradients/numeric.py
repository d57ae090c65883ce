"""Compares gradients with finite differences in float64: PyTorch's gradcheck and gradgradcheck."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from opwright.checker.cases.case import Case, Family
from opwright.checker.gradients.code import gradient_code
from opwright.checker.kinds import Kind
from opwright.checker.verdict import Failure
from opwright.spec import derive
from opwright.spec.difference import first_line
from opwright.spec.expected import widened

if TYPE_CHECKING:
    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject

# Finite differences call the operator twice for each number: up to this many they are exact, above it they are sampled.
_EVERY_NUMBER = 64
_MOST_NUMBERS = 4096


def smallest_in_float64(subject: Subject, recorder: Recorder) -> Case | None:
    """The smallest call in float64 that the operator accepts."""
    cases = [*subject.samples, *(case for case in subject.varied if case.family is Family.SIZE)]
    cases = [case for case in cases if any(tensor.numel() for tensor in derive.tensors(case.arguments))]
    cases.sort(key=lambda case: sum(tensor.numel() for tensor in derive.tensors(case.arguments)))
    for case in cases:
        in_float64 = Case(f"{case.name} in float64", Family.DTYPE, pytree.tree_map(widened, case.arguments))
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
    """Compare the first derivatives of `case` with finite differences; with `twice`, the second ones too."""
    names = subject.differentiable(case)
    arguments = case.fresh()
    flat, shape = pytree.tree_flatten([arguments[name] for name in names])
    leaves = [leaf.requires_grad_() for leaf in flat if derive.has_gradient(leaf)]
    numbers = sum(leaf.numel() for leaf in leaves)
    if not leaves or numbers > _MOST_NUMBERS:
        recorder.note("no sample is small enough for finite differences")
        return

    def function(*leaves: Tensor) -> tuple[Tensor, ...]:
        moved = iter(leaves)
        filled = [next(moved) if derive.has_gradient(leaf) else leaf for leaf in flat]
        given = {**arguments, **dict(zip(names, pytree.tree_unflatten(filled, shape), strict=True))}
        return tuple(filter(derive.has_gradient, derive.tensors(subject.call(given))))

    fast = numbers > _EVERY_NUMBER
    checks: dict[str, Any] = {"gradcheck": torch.autograd.gradcheck, "gradgradcheck": torch.autograd.gradgradcheck}
    for what in checks if twice else ["gradcheck"]:
        step = f"{case.name}: torch.autograd.{what}"
        code = gradient_code(subject, case, names)
        if not recorder.begin(step, code):
            continue
        try:
            checks[what](function, tuple(leaves), fast_mode=fast)
            recorder.ok()
        except Exception as error:
            got, detail = first_line(error), str(error)[:2000]
            recorder.fail(
                Failure(Kind.WRONG_GRADIENT, step, code, got=got, expected="the finite differences", detail=detail)
            )
