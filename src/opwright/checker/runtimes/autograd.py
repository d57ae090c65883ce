"""Autograd: every gradient against the reference's, and against finite differences in float64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from opwright.checker.behavior.poison import poisoned
from opwright.checker.behavior.untracked import untracked
from opwright.checker.cases.case import Case, Family, copied
from opwright.checker.kinds import Kind
from opwright.checker.verdict import Failure
from opwright.spec import derive
from opwright.spec.difference import Difference, Goal, described, differs, first_line
from opwright.spec.expected import expected_gradients

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject

NAME = "autograd"

_LAYOUTS = 12
_QUICK_LAYOUTS = 4
# Finite differences call the operator twice for each number: up to this many they are exact, above it they are sampled.
_EVERY_NUMBER = 64
_MOST_NUMBERS = 4096


def why_not(subject: Subject) -> str:
    """Why autograd does not apply: it requires floating-point inputs and outputs, and a gradient between them."""
    if subject.op.mutates:
        return f"it mutates {', '.join(subject.op.mutates)}: no gradient is derived for it"
    if not any(map(subject.floating, subject.samples)):
        return "no sample has floating-point inputs and outputs"
    if not subject.op.differentiable:
        return "op.py declares that it has no gradient: differentiable=()"
    if not any(map(subject.differentiable, subject.samples)):
        listed = ", ".join(subject.op.differentiable)
        return f"no sample has a floating-point tensor where op.py declares a gradient: {listed}"
    return ""


@dataclass(frozen=True)
class _Trial:
    """One way to request gradients.

    Attributes:
        case: the call.
        what: what distinguishes it, in words.
        names: the arguments that require a gradient; it is compared for those that op.py declares differentiable.
        used: the one result that is used; None for all.
        expanded: whether the incoming gradients have strides of zero.
    """

    case: Case
    what: str
    names: list[str]
    used: int | None = None
    expanded: bool = False

    @property
    def step(self) -> str:
        """The trial in words."""
        return f"{self.case.name}: {self.what}"

    @property
    def kind(self) -> Kind:
        """The kind of fault that a wrong gradient indicates, given what the trial varies."""
        if self.used is not None:
            return Kind.UNDEFINED_GRADIENT
        if self.expanded or self.case.family is Family.STRIDES:
            return Kind.STRIDES
        return Kind.WRONG_GRADIENT


def run(subject: Subject, recorder: Recorder) -> None:
    """Compare gradients on the samples, then layouts, subsets and higher derivatives."""
    cases = [case for case in subject.claimed if subject.differentiable(case)]
    undeclared = [name for name in subject.floating(cases[0]) if name not in subject.op.differentiable]
    if undeclared:
        recorder.note(f"{', '.join(undeclared)} without a gradient: op.py does not declare it as differentiable")
    if not _is_tracked(subject, recorder, cases[0]):
        return
    for case in cases:
        _check(subject, recorder, _Trial(case, "all gradients", subject.floating(case)))
        _check_without_recording(subject, recorder, case)
    if not recorder.failed:
        for trial in _trials(subject, cases[0]):
            _check(subject, recorder, trial)
    if not recorder.failed:
        _check_numerically(subject, recorder)


def _is_tracked(subject: Subject, recorder: Recorder, case: Case) -> bool:
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


def _trials(subject: Subject, case: Case) -> Iterator[_Trial]:
    """Subsets of the arguments and of the results, other layouts and sizes."""
    names = subject.differentiable(case)
    if len(names) > 1:
        yield from (_Trial(case, f"the gradient of {name} alone", [name]) for name in names)
    results = sum(map(Tensor.is_floating_point, derive.tensors(list(subject.expected(case).own))))
    if results > 1:
        yield from (_Trial(case, f"from result {used} alone", names, used=used) for used in range(results))
    yield _Trial(case, "the incoming gradient expanded, as from sum()", names, expanded=True)
    others = [other for other in subject.varied if other.family in (Family.STRIDES, Family.SIZE)]
    for other in others[: _QUICK_LAYOUTS if subject.options.quick else _LAYOUTS]:
        if subject.differentiable(other):
            yield _Trial(other, "all gradients", subject.floating(other))


def _check(subject: Subject, recorder: Recorder, trial: _Trial) -> None:
    """Compare the gradients that a trial requests with those of the reference."""
    code = _code(subject, trial.case, trial.names)
    crash = trial.kind if trial.used is not None else Kind.CRASH
    compared = [name for name in trial.names if name in subject.op.differentiable]
    if not recorder.begin(trial.step, code, crash, trial.case.group):
        return
    try:
        grads = _incoming(subject, trial)
        goal = expected_gradients(subject.op, trial.case.fresh, grads, compared)
    except Exception as error:
        if trial.case.claimed and subject.op.gradient is None:
            # The gradient is derived from a reference that autograd cannot track: it would raise for users too.
            wanted = "a reference that autograd can track, or a native backward, or differentiable=() if there is none"
            recorder.fail(Failure(Kind.REFERENCE, trial.step, code, first_line(error), wanted))
        else:
            recorder.note(f"the reference has no gradient to compare with ({first_line(error)})")
        return
    try:
        with poisoned():
            found = _gradients(subject, trial, grads)
            # Reveals a dependence on old memory: on the previous call, or on the filling of fresh memory.
            others = [_gradients(subject, trial, grads)]
        with poisoned(on=False):
            others.append(_gradients(subject, trial, grads))
    except Exception as error:
        if trial.case.claimed:
            kind = Kind.RAISES if crash is Kind.CRASH else crash
            recorder.fail(Failure(kind, trial.step, code, first_line(error), "gradients", detail=str(error)[:2000]))
        else:
            recorder.rejected()
        return
    if found is None:
        _check_missing(subject, recorder, trial.step, code, goal)
        return
    for name in compared:
        same = pytree.tree_map(lambda gradient: Goal(gradient, gradient), found[name])
        changed = [other and other[name] for other in others if _fault(other and other[name], same)]
        unsteady = bool(changed)
        fault = _fault(found[name], goal[name])
        # Two gradients that differ by rounding, as with atomic additions, may both be correct.
        if fault is None and any(_fault(other, goal[name]) for other in changed):
            fault = Difference("values", "another one when the same call is made again", "the same")
        if fault is not None:
            wrong = Kind.MISSING_GRADIENT if found[name] is None else trial.kind
            got, expected = f"the gradient of {name}: {fault.got}", f"of the reference: {fault.expected}"
            recorder.fail(Failure(Kind.GRADIENT_UNINITIALISED if unsteady else wrong, trial.step, code, got, expected))
            return
    recorder.ok()


def _check_missing(subject: Subject, recorder: Recorder, step: str, code: str, goal: dict[str, Any]) -> None:
    """No result requires a gradient, which is correct only if the reference's gradients are all zero."""
    missing = [name for name, goals in goal.items() if any(_is_nonzero(one.own) for one in pytree.tree_leaves(goals))]
    if missing:
        recorder.fail(
            Failure(
                Kind.MISSING_GRADIENT,
                step,
                code,
                got="results that do not require a gradient",
                expected=f"a gradient of {', '.join(missing)}, as the reference has it",
            )
        )
    else:
        recorder.note(f"{subject.op.qualified_name} has no gradient, and the reference's is zero")
        recorder.ok()


def _fault(found: Any, goal: Any) -> Difference | None:
    if isinstance(goal, (list, tuple)):
        given = found if found is not None else [None] * len(goal)
        return next(filter(None, map(_fault, given, goal)), None)
    if goal.own is None:
        return None
    if found is None:
        return Difference("values", "none", described(goal.own)) if _is_nonzero(goal.own) else None
    return differs(found, goal)


def _is_nonzero(gradient: Tensor | None) -> bool:
    return gradient is not None and bool(gradient.any())


def _gradients(subject: Subject, trial: _Trial, grads: Sequence[Tensor | None]) -> dict[str, Any] | None:
    """The gradients of autograd; None if no result requires one."""
    arguments = trial.case.fresh()
    leaves: list[Tensor] = []
    for name in trial.names:
        arguments[name] = pytree.tree_map_only(Tensor, lambda tensor: _leaf(tensor, leaves), arguments[name])
    results = derive.tensors(subject.call(arguments))
    pairs = [
        (result, grad) for result, grad in zip(results, grads, strict=True) if grad is not None and result.requires_grad
    ]
    if not pairs:
        return None
    outputs, incoming = zip(*pairs, strict=True)
    found = iter(torch.autograd.grad(outputs, leaves, incoming, allow_unused=True))
    return {
        name: pytree.tree_map_only(Tensor, lambda tensor: next(found) if tensor.is_floating_point() else None, value)
        for name, value in arguments.items()
        if name in trial.names
    }


def _leaf(tensor: Tensor, leaves: list[Tensor]) -> Tensor:
    if not tensor.is_floating_point():
        return tensor
    leaf = copied(tensor).requires_grad_()
    leaves.append(leaf)
    return leaf


def _incoming(subject: Subject, trial: _Trial) -> list[Tensor | None]:
    """An incoming gradient for each tensor that the operator returns; None for integers and results not used."""
    generator = torch.Generator().manual_seed(subject.options.seed)
    grads: list[Tensor | None] = []
    number = 0
    for result in derive.tensors(list(subject.expected(trial.case).own)):
        if not result.is_floating_point():
            grads.append(None)
            continue
        drawn = torch.randn(() if trial.expanded else result.shape, generator=generator, dtype=torch.float64)
        grads.append(drawn.to(result).expand(result.shape) if trial.used in (None, number) else None)
        number += 1
    return grads


def _check_without_recording(subject: Subject, recorder: Recorder, case: Case) -> None:
    """Check that results under no_grad and inference_mode are the same, and require no gradient."""
    for mode in (torch.no_grad, torch.inference_mode):
        step = f"{case.name}: under {mode.__name__}"
        code = _code(subject, case, subject.floating(case))
        if not recorder.begin(step, code):
            continue
        try:
            with mode():
                arguments = pytree.tree_map_only(Tensor, lambda tensor: _leaf(tensor, []), case.fresh())
                results = subject.call(arguments)
        except Exception as error:
            recorder.fail(Failure(Kind.RAISES, step, code, first_line(error), "a result", detail=str(error)[:2000]))
            continue
        if any(tensor.requires_grad for tensor in derive.tensors(results)):
            # Only an argument itself, or a view of it, can require a gradient here.
            recorder.fail(Failure(Kind.ALIAS, step, code, "a result that requires a gradient", "one that does not"))
        elif (
            fault := subject.judge(case, [pytree.tree_map_only(Tensor, Tensor.detach, one) for one in results])
        ) is None:
            recorder.ok()
        else:
            recorder.fail(fault)


def _check_numerically(subject: Subject, recorder: Recorder) -> None:
    """Compare with finite differences (gradcheck, gradgradcheck), on the smallest call in float64 that it accepts."""
    case = _smallest_in_float64(subject, recorder)
    if case is None:
        recorder.note(
            "it does not take float64: gradients are compared with the reference's alone, not with finite differences"
        )
        return
    names = subject.differentiable(case)
    arguments = case.fresh()
    flat, shape = pytree.tree_flatten([arguments[name] for name in names])
    leaves = [leaf.requires_grad_() for leaf in flat if isinstance(leaf, Tensor) and leaf.is_floating_point()]
    numbers = sum(leaf.numel() for leaf in leaves)
    if not leaves or numbers > _MOST_NUMBERS:
        recorder.note("no sample is small enough for finite differences")
        return

    def function(*leaves: Tensor) -> tuple[Tensor, ...]:
        moved = iter(leaves)
        filled = [next(moved) if isinstance(leaf, Tensor) and leaf.is_floating_point() else leaf for leaf in flat]
        given = {**arguments, **dict(zip(names, pytree.tree_unflatten(filled, shape), strict=True))}
        return tuple(tensor for tensor in derive.tensors(subject.call(given)) if tensor.is_floating_point())

    fast = numbers > _EVERY_NUMBER
    for check, what in ((torch.autograd.gradcheck, "gradcheck"), (torch.autograd.gradgradcheck, "gradgradcheck")):
        step = f"{case.name}: torch.autograd.{what}"
        code = _code(subject, case, names)
        if not recorder.begin(step, code):
            continue
        try:
            check(function, tuple(leaves), fast_mode=fast)
            recorder.ok()
        except Exception as error:
            recorder.fail(
                Failure(
                    Kind.WRONG_GRADIENT,
                    step,
                    code,
                    got=first_line(error),
                    expected="the finite differences",
                    detail=str(error)[:2000],
                )
            )


def _smallest_in_float64(subject: Subject, recorder: Recorder) -> Case | None:
    """The smallest call in float64 that the operator accepts."""
    cases = [*subject.samples, *(case for case in subject.varied if case.family is Family.SIZE)]
    cases = [case for case in cases if any(tensor.numel() for tensor in derive.tensors(case.arguments))]
    cases.sort(key=lambda case: sum(tensor.numel() for tensor in derive.tensors(case.arguments)))
    for case in cases:
        wide = pytree.tree_map_only(
            Tensor, lambda tensor: tensor.double() if tensor.is_floating_point() else tensor, case.arguments
        )
        in_float64 = Case(f"{case.name} in float64", Family.DTYPE, wide)
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


def _code(subject: Subject, case: Case, names: Sequence[str]) -> str:
    *lines, call = subject.code(case).splitlines()
    ask = [f"{name}.requires_grad_()" for name in names if isinstance(case.arguments[name], Tensor)]
    sums = "sum(r.sum() for r in torch.utils._pytree.tree_leaves(result) if r.requires_grad).backward()"
    return "\n".join([*lines, *ask, f"result = {call}", sums])
