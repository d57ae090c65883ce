"""Checks the gradients that op.py describes: autograd tracks the reference, and a backward is its derivative."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch.utils import _pytree as pytree

from opwright.checker.behavior.untracked import untracked
from opwright.checker.cases.case import Family
from opwright.checker.cases.variation import tensors
from opwright.checker.gradients.code import gradient_code
from opwright.checker.gradients.goals import expected_of, fault
from opwright.checker.gradients.trial import Trial, incoming
from opwright.checker.kinds import Kind
from opwright.checker.verdict import Failure
from opwright.spec import derive

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from opwright.checker.cases.case import Case
    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject
    from opwright.spec.op import Backward

# The number of calls with zeros, ties and similar values on which a hand-written backward is compared.
_EDGES = 12


def is_tracked(subject: Subject, recorder: Recorder, case: Case) -> bool:
    """Record a fault if the reference has zero gradients only because autograd does not track it."""
    step, code = f"{case.name}: the graph of the reference", subject.code(case)
    if not recorder.begin(step, code):
        return True
    try:
        lost = untracked(subject.op, case.fresh, subject.differentiable(case))
    except Exception:
        return True  # the comparison of gradients reports it
    if not lost:
        return True
    listed = ", ".join(lost)
    declared = tuple(name for name in subject.op.differentiable if name not in lost)
    got = (
        f"the reference depends on {listed}, but its results have no graph to {listed}: an operator without a "
        "derivative, .detach(), NumPy or torch.no_grad() is in between, so all gradients are zero"
    )
    expected = (
        f"a reference in plain PyTorch, which autograd tracks, or differentiable={declared!r} if there is no gradient"
    )
    recorder.fail(Failure(Kind.REFERENCE, step, code, got, expected))
    return False


def is_backward_right(subject: Subject, recorder: Recorder, cases: list[Case]) -> bool:
    """Record a fault if the hand-written backward in op.py is not the derivative of the forward's reference."""
    gradient = subject.op.own_gradient
    if gradient is None or not gradient.op.has_own_reference:
        return True
    edges = [case for case in subject.varied if case.family is Family.EDGE and subject.differentiable(case)]
    for case in (*cases, *edges[:_EDGES]):
        step, code = f"{case.name}: the reference of {gradient.op.name}", gradient_code(subject, case, case.arguments)
        if not recorder.begin(step, code):
            continue
        try:
            found = _disagreement(subject, gradient, case)
        except Exception:
            continue  # the comparison of gradients reports it
        if found is not None:
            recorder.fail(Failure(Kind.REFERENCE, step, code, *found))
            return False
        recorder.ok()
    return True


def _disagreement(subject: Subject, gradient: Backward, case: Case) -> tuple[str, str] | None:
    """The gradient that the backward's reference returns, and the differing derivative of the forward's reference."""
    trial = Trial(case, "", tuple(subject.differentiable(case)))
    grads = incoming(subject, trial)
    goals = expected_of(subject.op, trial, grads)
    arguments = case.fresh()
    # In float64, because only a wrong formula is a fault, not rounding.
    wide, incoming_wide = pytree.tree_map(derive.widened, (arguments, grads))
    by_path = dict(tensors(_evaluated(subject, gradient, wide, incoming_wide)))
    originals = dict(tensors(arguments))
    for path, goal in goals.items():
        found = by_path.get(path)
        wrong = fault(None if found is None else found.to(originals[path].dtype), goal, everywhere=False)
        if wrong is not None:
            got = f"the reference of {gradient.op.name} returns as the gradient of {path}: {wrong.got}"
            return got, f"the derivative of the reference of {subject.op.name}: {wrong.expected}"
    return None


def _evaluated(
    subject: Subject, gradient: Backward, arguments: dict[str, Any], grads: Sequence[Tensor | None]
) -> dict[str, Any]:
    """The gradients that the reference of the backward operator returns, by argument."""
    op = subject.op
    positional, keywords = op.spread(arguments)
    results = pytree.tree_leaves(op.reference(*positional, **keywords))
    known = {**dict(zip(gradient.result_names, results, strict=True)), **arguments}
    wanted = [any(map(derive.has_gradient, derive.tensors(arguments[name]))) for name in op.differentiable]
    flags = [wanted] if gradient.takes_wanted else []
    found = gradient.op.reference(*grads, *(known[name] for name in gradient.saves), *flags)
    return dict(zip(op.differentiable, found if len(op.differentiable) > 1 else [found], strict=True))
