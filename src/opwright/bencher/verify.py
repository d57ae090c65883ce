"""Verifies the results and gradients of an implementation before it is timed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from opwright.spec import derive
from opwright.spec.difference import described, differs
from opwright.spec.expected import call_results, expected_gradients

if TYPE_CHECKING:
    from opwright.bencher.subject import Implementation, Subject
    from opwright.spec.difference import Difference, Goal


def result_fault(subject: Subject, implementation: Implementation) -> str:
    """How the results of a call under `torch.no_grad` differ from the expected ones; empty if they do not."""
    with torch.no_grad():
        results = subject.call(implementation, subject.fresh())
    found = subject.expected.difference(results, subject.op.tolerance)
    return _formatted(found) if found else ""


def gradient_fault(subject: Subject, implementation: Implementation) -> str:
    """How the results of a recorded call, or its gradients, differ from the expected ones; empty if they do not."""
    given = subject.gradients
    positional, keywords = subject.op.spread(given.arguments)
    results = implementation(*positional, **keywords)
    detached = pytree.tree_map_only(Tensor, Tensor.detach, results)
    found = subject.expected.difference(call_results(subject.op, detached, given.arguments), subject.op.tolerance)
    if found:
        return _formatted(found)
    selected = given.select(results)
    if not all(result.requires_grad for result in selected):
        return "a result that requires grad in the reference does not require grad here"
    return _first_fault(subject, given.of(selected))


def _first_fault(subject: Subject, found: tuple[Tensor | None, ...]) -> str:
    goals = _goals(subject)
    for gradient, (name, goal) in zip(found, goals, strict=True):
        if goal.own is None or (gradient is None and not bool(goal.own.any())):
            continue
        if gradient is None:
            return f"the gradient of {name}: none, expected {described(goal.own)}"
        if difference := differs(gradient, goal):
            return f"the gradient of {name}: {_formatted(difference)}"
    return ""


def _goals(subject: Subject) -> list[tuple[str, Goal]]:
    """For each leaf whose gradient is timed: its argument's name, and its expected gradient."""
    given = subject.gradients
    by_name = expected_gradients(subject.op, subject.fresh, given.grads, given.names)
    goals = []
    for name, expected in by_name.items():
        pairs = zip(*map(pytree.tree_leaves, (subject.arguments[name], expected)), strict=True)
        goals += [(name, goal) for leaf, goal in pairs if derive.has_gradient(leaf)]
    return goals


def _formatted(difference: Difference) -> str:
    return f"{difference.got}, expected {difference.expected}"
