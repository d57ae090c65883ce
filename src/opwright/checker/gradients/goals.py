"""Computes the expected gradients of a trial, and compares gradients with them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from opwright.checker.cases.variation import tensors
from opwright.checker.gradients.trial import is_among
from opwright.spec import derive
from opwright.spec.difference import Difference, Goal, described, differs
from opwright.spec.expected import Expected, expected_gradients

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opwright.checker.gradients.trial import Trial
    from opwright.spec import Op

# An element may differ by this many rounding errors of the largest element of its gradient.
_ROUNDINGS = 4.0


def expected_of(op: Op, trial: Trial, grads: Sequence[Tensor | None]) -> dict[str, Goal]:
    """The expected gradient of each argument that the trial compares, by path.

    It is the derivative of the reference of `op`; the reference of a backward is not used.
    """
    case = trial.case
    names = [name for name in op.differentiable if any(path.partition("[")[0] == name for path in trial.names)]
    by_name: dict[str, Any] = expected_gradients(op, case.fresh, grads, names)
    goals: dict[str, Goal] = {}
    for path, tensor in tensors(case.arguments):
        name, _, place = path.partition("[")
        if name in names and derive.has_gradient(tensor) and is_among(path, trial.names):
            goals[path] = by_name[name][int(place.rstrip("]"))] if place else by_name[name]
    return _joined(goals, dict(tensors(case.arguments)))


def summed(goals: Sequence[Goal]) -> Goal:
    """The sum of expected gradients."""
    nearby = goals[0].nearby

    def evaluate(change: Callable[[Any], Any]) -> list[Any]:
        flat = nearby.evaluate(change) if nearby is not None else []
        return [_total([flat[goal.at] for goal in goals])]

    own, precise = (_total([getattr(goal, name) for goal in goals]) for name in ("own", "precise"))
    return Goal(own, precise, None if nearby is None else replace(nearby, evaluate=evaluate, _drawn={}))


def fault(found: Tensor | None, goal: Goal, *, everywhere: bool, magnitude: float = 0.0) -> Difference | None:
    """Return how a gradient differs from the expected one; None if it does not.

    Args:
        found: the gradient; None, which autograd returns for an absent gradient, counts as zero.
        goal: the expected gradient.
        everywhere: whether to also compare elements where the derivative of the reference is not finite (such as that
            of a square root at zero, which does not define the gradient), or as small as the rounding error of its
            largest element. A backward that saves results instead of arguments loses these: for 1 + elu(x), for
            example, the derivative at x = -10.
        magnitude: that of the incoming and other gradients, whose rounding errors may remain in this gradient.
    """
    if goal.own is None:
        return None
    if found is None:
        return Difference("values", "none", described(goal.own)) if is_nonzero(goal.own) else None
    if everywhere or found.shape != goal.own.shape or found.dtype != goal.own.dtype:
        return differs(found, goal)
    known = goal.own.isfinite() & goal.precise.to(goal.own.dtype).isfinite()
    largest = max(magnitude, _largest(goal.own[known]))
    allowance = {found.dtype: _ROUNDINGS * torch.finfo(found.dtype).eps * largest}
    return differs(torch.where(known, found.detach(), goal.own), goal, allowance)


def are_accurate(goals: Mapping[str, Goal]) -> bool:
    """Whether the reference is precise enough to determine the gradients."""
    there = [goal for goal in goals.values() if goal.own is not None]
    return Expected(
        own=tuple(goal.own for goal in there), precise=tuple(goal.precise for goal in there)
    ).is_accurate and all(bool(goal.own.isfinite().all()) for goal in there)


def magnitude_of(grads: Sequence[Tensor | None], goals: Mapping[str, Goal]) -> float:
    """The largest finite magnitude in the incoming and expected gradients."""
    given = [*grads, *(goal.own for goal in goals.values())]
    return max((_largest(one[one.isfinite()]) for one in given if one is not None), default=0.0)


def is_nonzero(gradient: Tensor | None) -> bool:
    """Whether the gradient exists and is not zero."""
    return gradient is not None and bool(gradient.any())


def _joined(goals: dict[str, Goal], originals: Mapping[str, Tensor]) -> dict[str, Goal]:
    """Sum `goals` over arguments that are the same tensor, for which autograd computes one gradient."""
    sharing: dict[int, list[str]] = {}
    for path in goals:
        sharing.setdefault(id(originals[path]), []).append(path)
    joined = dict(goals)
    for paths in sharing.values():
        there = [goals[path] for path in paths if goals[path].own is not None]
        if len(paths) > 1 and there:
            joined |= dict.fromkeys(paths, summed(there))
    return joined


def _largest(numbers: Tensor) -> float:
    return float(numbers.abs().max()) if numbers.numel() else 0.0


def _total(gradients: Sequence[Tensor]) -> Tensor:
    return torch.stack(list(gradients)).sum(0)
