"""Checks that autograd tracks the reference in op.py, and that a backward in op.py is its derivative."""

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

# The number of calls with zeros, ties and similar values for which a hand-written backward is compared.
_EDGES = 12


def is_tracked(subject: Subject, recorder: Recorder, case: Case) -> bool:
    """Return whether autograd tracks the reference; record a fault if untracked arguments affect its results."""
    step, code = f"{case.name}: the graph of the reference", subject.code(case)
    if not recorder.begin(step, code):
        return True
    try:
        lost = untracked(subject.op, case.fresh, subject.differentiable(case))
    except Exception:
        return True  # the comparison of gradients reports this
    if not lost:
        return True
    listed = ", ".join(lost)
    declared = tuple(name for name in subject.op.differentiable if name not in lost)
    got = (
        f"the reference depends on {listed}, but the graph of its results does not contain {listed}: an operator "
        "without a derivative, .detach(), NumPy or torch.no_grad() interrupts it, so all gradients are zero"
    )
    expected = (
        f"a reference in plain PyTorch that autograd tracks, or differentiable={declared!r} if there is no gradient"
    )
    recorder.fail(Failure(Kind.REFERENCE, step, code, got, expected))
    return False


def is_backward_right(subject: Subject, recorder: Recorder, cases: list[Case]) -> bool:
    """Return whether the backward in op.py is the derivative of the forward's reference; record a fault if not."""
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
            continue  # the comparison of gradients reports this
        if found is not None:
            recorder.fail(Failure(Kind.REFERENCE, step, code, *found))
            return False
        recorder.ok()
    return True


def _disagreement(subject: Subject, gradient: Backward, case: Case) -> tuple[str, str] | None:
    """The first gradient of the backward's reference that differs from the forward's derivative, and the latter."""
    trial = Trial(case, "", tuple(subject.differentiable(case)))
    grads = incoming(subject, trial)
    goals = expected_of(subject.op, trial, grads)
    arguments = case.fresh()
    # In float64, because a wrong formula is a fault and rounding is not.
    wide, incoming_wide = pytree.tree_map(derive.widened, (arguments, grads))
    by_path = dict(tensors(_evaluated(subject, gradient, wide, incoming_wide)))
    originals = dict(tensors(arguments))
    for path, goal in goals.items():
        found = by_path.get(path)
        wrong = fault(None if found is None else found.to(originals[path].dtype), goal, everywhere=False)
        if wrong is not None:
            got = f"the gradient of {path} that the reference of {gradient.op.name} returns: {wrong.got}"
            return got, f"the derivative of the reference of {subject.op.name}: {wrong.expected}"
    return None


def _evaluated(
    subject: Subject, gradient: Backward, arguments: dict[str, Any], grads: Sequence[Tensor | None]
) -> dict[str, Any]:
    """The gradients that the reference of the backward returns, by argument."""
    op = subject.op
    positional, keywords = op.spread(arguments)
    results = pytree.tree_leaves(op.reference(*positional, **keywords))
    known = {**dict(zip(gradient.result_names, results, strict=True)), **arguments}
    wanted = [any(map(derive.has_gradient, derive.tensors(arguments[name]))) for name in op.differentiable]
    flags = [wanted] if gradient.takes_wanted else []
    found = gradient.op.reference(*grads, *(known[name] for name in gradient.saves), *flags)
    return dict(zip(op.differentiable, found if len(op.differentiable) > 1 else [found], strict=True))
