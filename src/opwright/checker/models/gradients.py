"""Compares the gradients of a runtime with those of the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor
from torch.utils import _pytree as pytree

from opwright.checker.kinds import Kind
from opwright.checker.models import source
from opwright.checker.verdict import Failure
from opwright.probe.gradients import gradients, ramp
from opwright.spec import derive
from opwright.spec.difference import Goal, described, differs
from opwright.spec.expected import expected_gradients

if TYPE_CHECKING:
    from collections.abc import Callable

    from opwright.checker.cases.case import Case
    from opwright.checker.steps import Steps
    from opwright.checker.subject import Subject


def has_gradient(subject: Subject, case: Case) -> bool:
    """Whether `case` has gradients: a differentiable floating-point argument, and a floating-point result."""
    return bool(subject.differentiable(case))


def requiring_grad(subject: Subject, case: Case) -> dict[str, Any]:
    """Fresh arguments of `case`; those that have a gradient require it."""
    arguments = case.fresh()
    for name in subject.op.differentiable:
        for tensor in derive.tensors(arguments[name]):
            if tensor.is_floating_point():
                tensor.requires_grad_()
    return arguments


def check_gradients(
    steps: Steps, step: str, repro: str, case: Case, run: Callable[[dict[str, Any]], list[Any]]
) -> None:
    """Compute the gradients of `case` in a runtime, and compare them with the reference's.

    Args:
        steps: the steps of the cell.
        step: a description of the step.
        repro: lines of Python that reproduce it.
        case: the call.
        run: calls the operator in the runtime with arguments that require gradients, and returns the outcome.
    """
    arguments = requiring_grad(steps.subject, case)
    found = steps.do(step, repro, lambda: gradients(run(arguments), tuple(arguments.values())), case)
    if found is not None:
        judge_gradients(steps, step, repro, case, found)


def judge_gradients(steps: Steps, step: str, repro: str, case: Case, found: list[Tensor | None]) -> bool:
    """Record whether gradients agree with the reference's, and return the outcome."""
    arguments = requiring_grad(steps.subject, case)
    given = zip(source.tensor_names(arguments), derive.tensors(arguments), strict=True)
    names = [name for name, tensor in given if tensor.requires_grad]
    for name, got, goal in zip(names, found, _goals(steps.subject, case), strict=True):
        own = goal.own
        if got is None:
            if own is None or not bool(own.any()):
                continue
            lost = Failure(Kind.MISSING_GRADIENT, step, repro, got=f"no gradient of {name}", expected=described(own))
            steps.recorder.fail(lost)
            return False
        difference = differs(got, goal)
        if difference is not None:
            got_text, expected = f"the gradient of {name}: {difference.got}", difference.expected
            steps.recorder.fail(Failure(Kind.WRONG_GRADIENT, step, repro, got=got_text, expected=expected))
            return False
    steps.recorder.ok()
    return True


def _goals(subject: Subject, case: Case) -> list[Goal]:
    """The expected gradient of each tensor that requires one."""
    op = subject.op
    results = pytree.tree_leaves(list(subject.expected(case).own)[: len(op.results)])
    floating = [isinstance(leaf, Tensor) and leaf.is_floating_point() for leaf in results]
    ramps = [ramp(leaf) if there else None for leaf, there in zip(results, floating, strict=True)]
    arguments = requiring_grad(subject, case)
    try:
        by_name = expected_gradients(op, case.fresh, ramps, op.differentiable)
    except Exception:
        found = gradients(subject.call(arguments)[: len(op.results)], tuple(arguments.values()))
        return [Goal(gradient, gradient) for gradient in found]
    goals = pytree.tree_leaves([by_name[name] for name in op.differentiable])
    given = pytree.tree_leaves([arguments[name] for name in op.differentiable])
    return [
        goal for tensor, goal in zip(given, goals, strict=True) if isinstance(tensor, Tensor) and tensor.requires_grad
    ]
