"""Checks gradients requested repeatedly, after in-place changes, between other calls, and from several threads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from opwright.checker.behavior.concurrency import run_concurrently
from opwright.checker.cases.case import Case, Family
from opwright.checker.cases.samples import samples
from opwright.checker.cases.variation import replaced, tensors
from opwright.checker.gradients.code import gradient_code
from opwright.checker.gradients.goals import expected_of, fault, summed
from opwright.checker.gradients.trial import Trial, gradients, incoming, live, pulled, with_leaves
from opwright.checker.kinds import Kind
from opwright.checker.verdict import Failure
from opwright.spec import derive
from opwright.spec.difference import first_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject
    from opwright.spec.difference import Goal

# The number of tensors that are changed in place, one at a time, in a quick and in a full check.
_CHANGED = (3, 12)
# The number of calls per thread, and the CPU time after which no further call starts.
_CALLS = (4, 20)
_MOST_S = (0.2, 1.0)

Found = tuple[Kind, str, str]


@dataclass(frozen=True)
class _Call:
    """A call whose gradients are requested, its incoming gradients, and the expected gradients by path."""

    trial: Trial
    grads: list[Tensor | None]
    goals: dict[str, Goal]

    def made(self, subject: Subject) -> tuple[dict[str, Any], dict[str, Tensor], list[Tensor]]:
        """Call the operator; return the arguments, the leaves that require a gradient by path, and the results."""
        arguments, leaves = with_leaves(self.trial.case, self.trial.names)
        return arguments, leaves, derive.tensors(subject.call(arguments))

    def wrong(self, found: Mapping[str, Tensor | None] | None, what: str, kind: Kind, times: int = 1) -> Found | None:
        """The first gradient in `found` that is not `times` the expected one."""
        for path, goal in self.goals.items():
            scaled = summed([goal] * times) if times > 1 and goal.own is not None else goal
            difference = fault(None if found is None else found[path], scaled, everywhere=False)
            if difference is not None:
                return kind, f"{what}, the gradient of {path}: {difference.got}", difference.expected
        return None


def check_reuse(subject: Subject, recorder: Recorder, cases: list[Case]) -> None:
    """Request gradients repeatedly, after in-place changes, between other calls, and from several threads."""
    case = cases[0]
    try:
        call, other = _call(subject, case), _call(subject, _other(subject, case))
    except Exception:
        return  # the comparison of gradients reports this
    quick = subject.options.quick
    checks: dict[str, Callable[[], Found | None]] = {
        "gradients of two calls of backward()": lambda: _accumulated(subject, call),
        "gradients after the first ones were overwritten": lambda: _overwritten(subject, call),
        "gradients of a call after another call": lambda: _interleaved(subject, call, other),
        "gradients from two threads at once": lambda: _from_threads(subject, call, other),
    }
    for path in [*dict(tensors(case.arguments))][: _CHANGED[0] if quick else _CHANGED[1]]:
        checks[f"gradients after {path} was changed in place"] = lambda path=path: _changed(subject, call, path)  # type: ignore[misc]
    checks["gradients after the results were changed in place"] = lambda: _changed(subject, call, "")
    code = gradient_code(subject, case, call.trial.names)
    for what, check in checks.items():
        step = f"{case.name}: {what}"
        if not recorder.begin(step, code):
            continue
        try:
            found = check()
        except Exception as error:
            found = Kind.RAISES, first_line(error), "gradients"
        if found is None:
            recorder.ok()
        else:
            recorder.fail(Failure(found[0], step, code, found[1], found[2]))


def _call(subject: Subject, case: Case) -> _Call:
    trial = Trial(case, "", tuple(subject.floating(case)))
    grads = incoming(subject, trial)
    return _Call(trial, grads, expected_of(subject.op, trial, grads))


def _other(subject: Subject, case: Case) -> Case:
    """The author's first call with other values: a shared buffer mixes up calls with the same shapes."""
    drawn = samples(subject.op, subject.device, subject.options.seed + 1)[0]
    other = Case(f"{drawn.name} with other values", Family.SAMPLE, drawn.arguments, claimed=True)
    return other if subject.differentiable(other) else case


def _accumulated(subject: Subject, call: _Call) -> Found | None:
    arguments, leaves, results = call.made(subject)
    outputs, given = live(results, call.grads)
    if not outputs:
        return None
    torch.autograd.backward(outputs, given, retain_graph=True)
    by_storage = {_storage(tensor): path for path, tensor in tensors({**arguments, "the results": results})}
    for path, leaf in leaves.items():
        if leaf.grad is not None and leaf.grad.numel() and (owner := by_storage.get(_storage(leaf.grad))):
            got = f"the gradient of {path} shares memory with {owner}"
            return Kind.ALIAS, got, "new memory, because optimizers change gradients in place"
    torch.autograd.backward(outputs, given)
    found = {path: leaf.grad for path, leaf in leaves.items()}
    if (wrong := call.wrong(found, "after two calls of backward()", Kind.WRONG_GRADIENT, times=2)) is not None:
        return wrong
    try:
        torch.autograd.backward(outputs, given)
    except RuntimeError:
        return None  # PyTorch has freed the graph
    return call.wrong(found, "after a call of backward() on a freed graph", Kind.WRONG_GRADIENT, times=3)


def _overwritten(subject: Subject, call: _Call) -> Found | None:
    _, leaves, results = call.made(subject)
    # A gradient may be the incoming one, as in PyTorch's own operators, so each request gets new copies.
    first = pulled(results, _copies(call.grads), leaves, retain_graph=True)
    if first is None:
        return None
    for gradient in first.values():
        if gradient is not None:
            _overwrite(gradient)
    what = "after the gradients of an earlier backward were overwritten in place"
    return call.wrong(pulled(results, _copies(call.grads), leaves), what, Kind.STATE)


def _interleaved(subject: Subject, call: _Call, other: _Call) -> Found | None:
    _, leaves, results = call.made(subject)
    _, further, last = other.made(subject)
    first = pulled(results, call.grads, leaves)
    second = pulled(last, other.grads, further)
    return call.wrong(first, "after another call", Kind.STATE) or other.wrong(
        second, "after the backward of an earlier call", Kind.STATE
    )


def _from_threads(subject: Subject, call: _Call, other: _Call) -> Found | None:
    faults: list[Found] = []

    def caller(one: _Call) -> Callable[[], str | None]:
        def run() -> str | None:
            try:
                found = one.wrong(gradients(subject, one.trial, one.grads), "from two threads at once", Kind.RACE)
            except Exception as error:
                found = Kind.RACE, first_line(error), "gradients, as from one thread"
            if found is not None:
                faults.append(found)
            return None if found is None else found[1]

        return run

    at = 0 if subject.options.quick else 1
    run_concurrently([caller(call), caller(other)], times=_CALLS[at], least_s=0.0, most_s=_MOST_S[at])
    return faults[0] if faults else None


def _changed(subject: Subject, call: _Call, path: str) -> Found | None:
    """Change the argument at `path`, or the results if `path` is empty, between the call and its backward."""
    arguments, leaves = with_leaves(call.trial.case, call.trial.names)
    changed: list[Tensor] = []
    if path:
        # PyTorch rejects in-place changes of a leaf; users change computed tensors.
        changed = [dict(tensors(arguments))[path].clone()]
        arguments = replaced(arguments, path, changed[0])
    results = derive.tensors(subject.call(arguments))
    with torch.no_grad():
        for tensor in changed or results:
            _change(tensor)
    try:
        found = pulled(results, call.grads, leaves)
    except RuntimeError:
        return None  # PyTorch detected the change of a saved tensor
    what = f"after an in-place change of {path or 'the results'} between the call and its backward"
    wrong = call.wrong(found, what, Kind.WRONG_GRADIENT)
    wanted = "an error, as for tensors saved with save_for_backward, or the gradient for the original values"
    return wrong and (wrong[0], wrong[1], f"{wanted}: {wrong[2]}")


def _change(tensor: Tensor) -> None:
    if derive.has_gradient(tensor):
        tensor.mul_(-2).add_(1)
    else:
        tensor.zero_()  # zero is a valid index and mask


def _overwrite(gradient: Tensor) -> None:
    for at in range(gradient.dim()):
        if gradient.stride(at) == 0 and gradient.shape[at] > 1:
            gradient = gradient.narrow(at, 0, 1)  # PyTorch rejects writes to overlapping elements
    gradient.fill_(float("nan"))


def _copies(grads: Sequence[Tensor | None]) -> list[Tensor | None]:
    return [None if grad is None else grad.clone() for grad in grads]


def _storage(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)
