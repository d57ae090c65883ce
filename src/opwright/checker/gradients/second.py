"""Compares second derivatives in the operator's own dtype with the reference's and with finite differences.

The finite differences are central differences of a scalar s along a random direction d: s(z) is the inner product of
the operator's own first derivative at z with random weights, where z contains the arguments and the incoming gradients.
The second derivative predicts that s(z + h d) - s(z - h d) is 2 h times its own inner product with d. The step h is the
cube root of the dtype's precision, for which the rounding error (eps / h) and the third-order term (h^2) are about
equal. Both are measured: the derivative of the reference in float64 at the same points has the same third-order term,
and the same kinks between the points; the difference between s and its value in float64 is the rounding error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from opwright.checker.cases.case import Case, Family
from opwright.checker.cases.code import variable
from opwright.checker.cases.samples import elements_in
from opwright.checker.cases.variation import generator, replaced, tensors
from opwright.checker.gradients.code import gradient_code
from opwright.checker.gradients.goals import fault
from opwright.checker.gradients.trial import Trial, incoming, is_among, live
from opwright.checker.kinds import Kind
from opwright.checker.verdict import Failure
from opwright.spec import derive
from opwright.spec.difference import first_line
from opwright.spec.expected import expected_values
from opwright.spec.float64 import precisely

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject
    from opwright.spec.difference import Goal

    # Calls an operator or its reference with arguments, and returns its tensors.
    Call = Callable[[dict[str, Any]], list[Tensor]]

# Phrases in errors of PyTorch and of authors for a missing second derivative.
_REFUSAL = re.compile(
    r"twice|once_differentiable|double backward|second derivative|is not implemented|not differentiable|no derivative",
    re.IGNORECASE,
)
_DIRECTIONS = (2, 4)
_CASES = (1, 3)
# A prediction may differ from the finite differences by a multiple of the rounding error and the third-order term, plus
# a number of rounding errors of each product that it sums.
_FACTOR = 2.0
_ROUNDINGS = 16.0


@dataclass
class _Point:
    """A point of differentiation: the arguments of a call, its incoming gradients, and weights of its gradients."""

    arguments: dict[str, Any]
    paths: list[str]
    grads: list[Tensor | None]
    weights: list[Tensor]

    @property
    def packed(self) -> tuple[Any, ...]:
        """The attributes, for functions that map over nested tensors."""
        return self.arguments, self.paths, self.grads, self.weights

    def in_float64(self) -> _Point:
        return _Point(*pytree.tree_map(derive.widened, self.packed))

    def numbers(self) -> list[Tensor]:
        """The variables of differentiation: the arguments and the incoming gradients."""
        by_path = dict(tensors(self.arguments))
        return [*(by_path[path] for path in self.paths), *(grad for grad in self.grads if grad is not None)]

    def moved(self, numbers: Sequence[Tensor]) -> _Point:
        """The point with other values of its variables."""
        given = iter(numbers)
        arguments = _replaced(self.arguments, {path: next(given) for path in self.paths})
        return _Point(
            arguments, self.paths, [None if grad is None else next(given) for grad in self.grads], self.weights
        )


def check_second_derivatives(subject: Subject, recorder: Recorder, cases: list[Case], *, numerically: bool) -> bool:
    """Compare second derivatives with the reference's, and with finite differences of first derivatives.

    Args:
        subject: the operator.
        recorder: records the outcomes.
        cases: calls of the operator, of which the smallest are used.
        numerically: whether to compare with finite differences; another check does that more precisely in float64.

    Returns:
        Whether the operator has second derivatives. If it rejects them with an error, that is noted.
    """
    smallest = sorted(cases, key=lambda case: elements_in(case.arguments) or 2**31)
    for case in smallest[: _CASES[0] if subject.options.quick else _CASES[1]]:
        step, code = f"{case.name}: second derivatives", _code(subject, case)
        if not recorder.begin(step, code):
            continue
        point = _point(subject, case)
        try:
            goals = _goals(subject, point)
        except Exception as error:
            recorder.note(f"the reference has no second derivative to compare with ({first_line(error)})")
            return True
        try:
            found = _derived(_operator(subject), point)
        except Exception as error:
            if _REFUSAL.search(str(error)):
                recorder.note(
                    f"it has no second derivatives, and raises an error when they are requested ({first_line(error)})"
                )
                return False
            wanted = "second derivatives, or an error stating that the operator is not differentiable twice"
            recorder.fail(Failure(Kind.RAISES, step, code, first_line(error), wanted, detail=str(error)[:2000]))
            return False
        failure = _compared(point, found, goals, step, code)
        if failure is None and numerically:
            failure = _against_finite_differences(subject, recorder, point, found, goals, step, code)
        if failure is not None:
            recorder.fail(failure)
            return True
        recorder.ok()
    return True


def _compared(
    point: _Point, found: Sequence[Tensor | None], goals: Sequence[Goal], step: str, code: str
) -> Failure | None:
    for name, got, goal in zip(_names(point), found, goals, strict=True):
        wrong = fault(got, goal, everywhere=False)
        if wrong is not None:
            kind = Kind.MISSING_GRADIENT if got is None else Kind.WRONG_GRADIENT
            text = f"the second derivative by {name}: {wrong.got}"
            return Failure(kind, step, code, text, f"of the reference: {wrong.expected}")
    return None


def _against_finite_differences(
    subject: Subject,
    recorder: Recorder,
    point: _Point,
    found: Sequence[Tensor | None],
    goals: Sequence[Goal],
    step: str,
    code: str,
) -> Failure | None:
    numbers = point.numbers()
    eps = max(torch.finfo(number.dtype).eps for number in numbers)
    size = eps ** (1 / 3)
    for at in range(_DIRECTIONS[0] if subject.options.quick else _DIRECTIONS[1]):
        draw = generator(subject.options.seed, step, str(at))
        above, below = [], []
        for number in numbers:
            by = (
                size * _scale(number) * torch.randn(number.shape, generator=draw, dtype=torch.float64).to(number.device)
            )
            above.append((derive.widened(number) + by).to(number.dtype))
            below.append((derive.widened(number) - by).to(number.dtype))
        # The actual step, after rounding.
        half = [(derive.widened(up) - derive.widened(down)) / 2 for up, down in zip(above, below, strict=True)]
        ends = point.moved(above), point.moved(below)
        if any(subject.is_outside(Case(step, Family.SAMPLE, end.arguments)) for end in ends):
            continue
        if not all(_has_shapes(call, end) for end in ends for call in (_reference(subject), _operator(subject))):
            continue
        own = [_weighted(_operator(subject), end) for end in ends]
        try:
            precise = [_precisely_weighted(subject, end) for end in ends]
        except Exception as error:
            # Only float64 would show the size of rounding errors.
            recorder.note(
                "second derivatives are not compared with finite differences: the reference does not support float64 "
                f"({first_line(error)})"
            )
            return None
        predicted, products = _along(found, half)
        goal, _ = _along([value.precise for value in goals], half)
        _, inexact = _along([_gap(value) for value in goals], half)
        measured = (own[0] - own[1]) / 2
        third_order = abs(goal - (precise[0] - precise[1]) / 2)
        rounding = max(abs(one - other) for one, other in zip(own, precise, strict=True))
        allowance = _FACTOR * (third_order + rounding) + _ROUNDINGS * (eps * products + inexact)
        if abs(predicted - measured) > allowance:
            got = f"second derivatives that predict a change of the first ones by {predicted:.6g} along direction {at}"
            return Failure(
                Kind.WRONG_GRADIENT, step, code, got, f"finite differences: {measured:.6g} within {allowance:.2g}"
            )
    return None


def _point(subject: Subject, case: Case) -> _Point:
    names = tuple(subject.differentiable(case))
    arguments = case.fresh()
    paths = [path for path, tensor in tensors(arguments) if derive.has_gradient(tensor) and is_among(path, names)]
    grads = incoming(subject, Trial(case, "", names))
    by_path, draw = dict(tensors(arguments)), generator(subject.options.seed, case.name)
    weights = [
        torch.randn(by_path[path].shape, generator=draw, dtype=torch.float64).to(by_path[path]) for path in paths
    ]
    return _Point(arguments, paths, grads, weights)


def _goals(subject: Subject, point: _Point) -> list[Goal]:
    """The second derivatives of the reference."""

    def compute(given: tuple[Any, ...]) -> list[Tensor]:
        moved = _Point(*given)
        found = zip(_derived(_reference(subject), moved), moved.numbers(), strict=True)
        return [torch.zeros_like(number) if one is None else one for one, number in found]

    return expected_values(compute, point.packed)


def _derived(call: Call, point: _Point) -> list[Tensor | None]:
    """The derivatives of the weighted first derivatives with respect to each variable; None if there is none."""
    moving = [number.detach().clone().requires_grad_() for number in point.numbers()]
    pairs = [(one, weight) for one, weight in _first(call, point.moved(moving), graph=True) if one.requires_grad]
    if not pairs:
        return [None] * len(moving)
    outputs, weights = zip(*pairs, strict=True)
    # Not torch.autograd.grad, which skips the error of @once_differentiable: its node has no path to `moving`.
    torch.autograd.backward(outputs, weights)
    return [number.grad for number in moving]


def _weighted(call: Call, point: _Point) -> float:
    """The sum of the first derivatives, each times its weight."""
    moving = [number.detach().clone().requires_grad_() for number in point.numbers()]
    return sum(_product(one, weight) for one, weight in _first(call, point.moved(moving), graph=False))


def _precisely_weighted(subject: Subject, point: _Point) -> float:
    """The weighted sum of the reference's first derivatives in float64."""
    return precisely(point.packed, point.in_float64, lambda wide: _weighted(_reference(subject), wide))


def _has_shapes(call: Call, point: _Point) -> bool:
    """Whether the results at a point have the shapes of its incoming gradients, unlike `x[x > 0]`."""
    try:
        results = call(pytree.tree_map_only(Tensor, Tensor.clone, point.arguments))
    except Exception:
        return False
    return len(results) == len(point.grads) and all(
        grad is None or grad.shape == result.shape for result, grad in zip(results, point.grads, strict=True)
    )


def _first(call: Call, point: _Point, *, graph: bool) -> list[tuple[Tensor, Tensor]]:
    """The existing first derivatives, each with its weight."""
    leaves = [dict(tensors(point.arguments))[path] for path in point.paths]
    # Clones, because a reference may write to its arguments.
    results = call(
        _replaced(point.arguments, {path: leaf.clone() for path, leaf in zip(point.paths, leaves, strict=True)})
    )
    outputs, given = live(results, point.grads)
    if not outputs:
        return []
    found = torch.autograd.grad(outputs, leaves, given, create_graph=graph, allow_unused=True)
    return [(one, weight) for one, weight in zip(found, point.weights, strict=True) if one is not None]


def _operator(subject: Subject) -> Call:
    return lambda arguments: derive.tensors(subject.call(arguments))


def _reference(subject: Subject) -> Call:
    def call(arguments: dict[str, Any]) -> list[Tensor]:
        positional, keywords = subject.op.spread(arguments)
        return derive.tensors(subject.op.reference(*positional, **keywords))

    return call


def _along(derivatives: Sequence[Tensor | None], steps: Sequence[Tensor]) -> tuple[float, float]:
    """The change that derivatives predict for steps, and the sum of the magnitudes of their terms."""
    there = [(one, step) for one, step in zip(derivatives, steps, strict=True) if one is not None]
    return sum(_product(*pair) for pair in there), sum(
        float((derive.widened(one) * step).abs().sum()) for one, step in there
    )


def _product(one: Tensor, other: Tensor) -> float:
    """The real inner product of two tensors, in float64."""
    left, right = derive.widened(one.detach()), derive.widened(other.detach())
    return float((left.conj() * right).real.sum() if left.is_complex() else (left * right).sum())


def _gap(goal: Goal) -> Tensor | None:
    return (
        None
        if goal.own is None or goal.precise is None
        else (derive.widened(goal.own) - derive.widened(goal.precise)).abs()
    )


def _scale(number: Tensor) -> float:
    largest = float(derive.widened(number.detach()).abs().square().mean().sqrt()) if number.numel() else 0.0
    return largest or 1.0


def _names(point: _Point) -> list[str]:
    grads = [at for at, grad in enumerate(point.grads) if grad is not None]
    return [*point.paths, *(f"the incoming gradient of result {at}" for at in grads)]


def _replaced(arguments: dict[str, Any], by_path: dict[str, Tensor]) -> dict[str, Any]:
    for path, tensor in by_path.items():
        arguments = replaced(arguments, path, tensor)
    return arguments


def _code(subject: Subject, case: Case) -> str:
    *lines, outputs, _ = gradient_code(subject, case, subject.differentiable(case)).splitlines()
    leaves = [
        variable(path)
        for path, tensor in tensors(case.arguments)
        if derive.has_gradient(tensor) and is_among(path, subject.differentiable(case))
    ]
    listed = f"[{', '.join(leaves)}]"
    first = (
        f"first = torch.autograd.grad(outputs, {listed}, [torch.randn_like(one) for one in outputs], create_graph=True)"
    )
    second = f"torch.autograd.grad(first, {listed}, [torch.randn_like(one) for one in first])"
    return "\n".join([*lines, outputs, first, second])
