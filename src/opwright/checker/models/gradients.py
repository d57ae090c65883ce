"""Compares the gradients of a runtime with those of eager mode and of the oracle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor
from torch.utils import _pytree as pytree

from opwright.checker.kinds import Kind
from opwright.checker.models import source
from opwright.checker.verdict import Failure
from opwright.probe.gradients import gradients, ramp
from opwright.spec import derive
from opwright.spec.difference import described, differs

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
    """Compute the gradients of `case` in a runtime, and compare them with those of eager mode.

    Args:
        steps: the steps of the cell.
        step: the step in words.
        repro: lines of Python that reproduce it.
        case: the call.
        run: calls the operator in the runtime with arguments that require gradients, and returns the outcome.
    """
    arguments = requiring_grad(steps.subject, case)
    found = steps.do(step, repro, lambda: gradients(run(arguments), tuple(arguments.values())), case)
    if found is not None:
        judge_gradients(steps, step, repro, case, found)


def judge_gradients(steps: Steps, step: str, repro: str, case: Case, found: list[Tensor | None]) -> bool:
    """Record whether gradients are those of eager mode, and return it."""
    arguments = requiring_grad(steps.subject, case)
    given = zip(source.tensor_names(arguments), derive.tensors(arguments), strict=True)
    names = [name for name, tensor in given if tensor.requires_grad]
    for name, got, own, precise in zip(names, found, *_expected(steps.subject, case), strict=True):
        if own is None and got is None:
            continue
        if got is None:
            lost = Failure(Kind.MISSING_GRADIENT, step, repro, got=f"no gradient of {name}", expected=described(own))
            steps.recorder.fail(lost)
            return False
        difference = differs(got, own, precise)
        if difference is not None:
            got_text, expected = f"the gradient of {name}: {difference.got}", difference.expected
            steps.recorder.fail(Failure(Kind.WRONG_GRADIENT, step, repro, got=got_text, expected=expected))
            return False
    steps.recorder.ok()
    return True


def _expected(subject: Subject, case: Case) -> tuple[list[Tensor | None], list[Tensor | None]]:
    """The gradients of `case` in eager mode, and those of the reference in float64."""
    op = subject.op
    arguments = requiring_grad(subject, case)
    results = subject.call(arguments)[: len(op.results)]
    own = gradients(results, tuple(arguments.values()))
    wide = pytree.tree_map_only(Tensor, _in_float64, arguments)
    leaves = pytree.tree_leaves(results)
    ramps = [ramp(leaf).double() if derive.has_gradient(leaf) and leaf.is_floating_point() else None for leaf in leaves]
    try:
        by_name = derive.reference_gradients(op, wide, ramps, op.differentiable)
    except Exception:
        return own, own
    derived = pytree.tree_leaves([by_name[name] for name in op.differentiable])
    given = pytree.tree_leaves([arguments[name] for name in op.differentiable])
    precise = [to for at, to in zip(given, derived, strict=True) if isinstance(at, Tensor) and at.requires_grad]
    return own, [one if other is None else other for one, other in zip(own, precise, strict=True)]


def _in_float64(tensor: Tensor) -> Tensor:
    return tensor.detach().double() if tensor.is_floating_point() else tensor.detach()
