"""Verifies the results and gradients of an implementation before and during timing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from opwright.spec.difference import described, differs
from opwright.spec.expected import call_results

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opwright.bencher.subject import Implementation, Subject
    from opwright.spec.difference import Difference


def result_fault(subject: Subject, implementation: Implementation) -> str:
    """How the results of a call under `torch.no_grad` differ from the expected ones; empty if they do not."""
    with torch.no_grad():
        results = subject.call(implementation, subject.fresh())
    return results_fault(subject, results)


def gradient_fault(subject: Subject, implementation: Implementation) -> str:
    """How the results of a recorded call, or its gradients, differ from the expected ones; empty if they do not."""
    given = subject.gradients
    positional, keywords = subject.op.spread(given.arguments)
    results = implementation(*positional, **keywords)
    detached = pytree.tree_map_only(Tensor, Tensor.detach, results)
    if fault := results_fault(subject, call_results(subject.op, detached, given.arguments)):
        return fault
    selected = given.select(results)
    if not all(result.requires_grad for result in selected):
        return "a result that requires grad in the reference does not require grad here"
    return gradients_fault(subject, given.of(selected))


def results_fault(subject: Subject, results: Sequence[Any]) -> str:
    """How the results of a call with the subject's arguments differ from the expected ones; empty if they do not."""
    found = subject.expected.difference(results, subject.op.tolerance)
    return _formatted(found) if found else ""


def gradients_fault(subject: Subject, found: Sequence[Tensor | None]) -> str:
    """How the gradients of the subject's leaves differ from the expected ones; empty if they do not."""
    for gradient, (name, goal) in zip(found, subject.expected_gradients, strict=True):
        if goal.own is None or (gradient is None and not bool(goal.own.any())):
            continue
        if gradient is None:
            return f"the gradient of {name}: none, expected {described(goal.own)}"
        if difference := differs(gradient, goal):
            return f"the gradient of {name}: {_formatted(difference)}"
    return ""


def _formatted(difference: Difference) -> str:
    return f"{difference.got}, expected {difference.expected}"
