"""Looks whether a way to compute an operator is right, before it is timed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from opwright.spec import derive
from opwright.spec.difference import described, differs
from opwright.spec.expected import expected_gradients, outcome

if TYPE_CHECKING:
    from opwright.bencher.subject import Subject, Way
    from opwright.spec.difference import Difference


def result_fault(subject: Subject, way: Way) -> str:
    """How the results of a call without gradients differ from what is right; empty where they do not."""
    with torch.no_grad():
        results = subject.call(way, subject.fresh())
    found = subject.expected.difference(results, subject.op.tolerance)
    return _told(found) if found else ""


def gradient_fault(subject: Subject, way: Way) -> str:
    """How the results of a call that is recorded, or its gradients, differ from what is right; empty as above."""
    given = subject.gradients
    positional, keywords = subject.op.spread(given.arguments)
    results = way(*positional, **keywords)
    detached = pytree.tree_map_only(Tensor, Tensor.detach, results)
    found = subject.expected.difference(outcome(subject.op, detached, given.arguments), subject.op.tolerance)
    if found:
        return _told(found)
    selected = given.select(results)
    if not all(result.requires_grad for result in selected):
        return "a result that requires a gradient in the reference requires none"
    return _first_fault(subject, given.of(selected))


def _first_fault(subject: Subject, found: tuple[Tensor | None, ...]) -> str:
    goals = _goals(subject)
    for gradient, (name, own, precise) in zip(found, goals, strict=True):
        if own is None or (gradient is None and not bool(own.any())):
            continue
        if gradient is None:
            return f"the gradient of {name}: none, expected {described(own)}"
        if difference := differs(gradient, own, precise):
            return f"the gradient of {name}: {_told(difference)}"
    return ""


def _goals(subject: Subject) -> list[tuple[str, Tensor | None, Tensor | None]]:
    """For each leaf whose gradient is timed: its argument, the gradient in its dtype, and in float64."""
    given = subject.gradients
    by_name = expected_gradients(subject.op, subject.fresh, given.grads, given.names)
    goals = []
    for name, (own, precise) in by_name.items():
        leaves = map(pytree.tree_leaves, (subject.arguments[name], own, precise))
        goals += [(name, *pair) for leaf, *pair in zip(*leaves, strict=True) if derive.has_gradient(leaf)]
    return goals


def _told(difference: Difference) -> str:
    return f"{difference.got}, expected {difference.expected}"
