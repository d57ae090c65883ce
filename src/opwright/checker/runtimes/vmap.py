"""`torch.vmap`, if it is claimed: a batch returns what its calls return one by one."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from opwright.checker.cases.case import Case, Family
from opwright.checker.cases.samples import samples
from opwright.checker.models import repro, source
from opwright.checker.steps import Steps
from opwright.spec import derive

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject

NAME = "vmap"

_BATCH = 3


def why_not(subject: Subject) -> str:
    """Why there is nothing to check."""
    if not subject.op.claims_vmap:
        return "not claimed; @library.op(vmap=True) claims it"
    if not derive.tensors(subject.samples[0].arguments):
        return "torch.vmap maps over tensors, and the operator takes none"
    return ""


def run(subject: Subject, recorder: Recorder) -> None:
    """Run a batch of each sample: along the first dimension, along the last, and with one tensor for all calls."""
    steps = Steps(subject, recorder)
    # The author's own calls, each time with other numbers.
    draws = [samples(subject.op, subject.device, subject.options.seed + by) for by in range(_BATCH)]
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        for calls in zip(*draws, strict=False):
            if not subject.expected(calls[0]).refusal:
                _check(steps, calls)


def _check(steps: Steps, calls: Sequence[Case]) -> None:
    leaves = pytree.tree_leaves(calls[0].arguments)
    mapped = [at for at, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
    _check_mapped(steps, calls, "batches in front", dict.fromkeys(mapped, 0))
    _check_mapped(steps, calls, "batches last", dict.fromkeys(mapped, -1))
    if len(mapped) > 1:
        owners = [name for name, value in calls[0].arguments.items() for _ in derive.tensors(value)]
        for owner, name, shared in zip(owners, source.tensor_names(calls[0].arguments), mapped, strict=True):
            # Calls cannot share an argument that they mutate.
            if owner not in steps.subject.op.mutates:
                others = {at: 0 for at in mapped if at != shared}
                _check_mapped(steps, calls, f"all calls share {name}", others)


def _check_mapped(steps: Steps, calls: Sequence[Case], how: str, dims: dict[int, int]) -> None:
    """Check one way to map; `dims` holds the mapped dimension of each leaf of the arguments."""
    subject = steps.subject
    step = f"{calls[0].name}, {how}"
    shape = pytree.tree_structure(calls[0].arguments)
    first, *others = (pytree.tree_leaves(call.fresh()) for call in calls)
    singles = [[leaf if at in dims else first[at] for at, leaf in enumerate(own)] for own in (first, *others)]
    batched = [
        torch.stack(own, dims[at]) if at in dims else own[0] for at, own in enumerate(zip(*singles, strict=True))
    ]
    arguments = pytree.tree_unflatten(batched, shape)
    in_dims = pytree.tree_unflatten([dims.get(at) for at in range(len(batched))], shape)
    if subject.op.has_domain and not all(
        _is_inside(subject, pytree.tree_unflatten(single, shape)) for single in singles
    ):
        return  # the tensors of one call do not fit those of another
    code = _code(subject, calls[0], in_dims)

    def one_call(*values: Any) -> Any:
        positional, keywords = subject.op.spread(dict(zip(arguments, values, strict=True)))
        return subject.overload(*positional, **keywords)

    def batch() -> list[Any]:
        results = torch.vmap(one_call, in_dims=tuple(in_dims.values()))(*arguments.values())
        return subject.outcome(results, arguments)

    outcome = steps.do(step, code, batch)
    if outcome is None:
        return
    returned = len(outcome) - len(subject.op.mutates)
    # Results are mapped along the first dimension, mutated arguments along their own.
    places = [*([0] * returned), *([next(iter(dims.values()))] * len(subject.op.mutates))]
    for at, single in enumerate(singles):
        case = Case(f"{step}: call {at} of {_BATCH}", Family.SAMPLE, pytree.tree_unflatten(single, shape))
        results = [_slice(result, dim, at) for result, dim in zip(outcome, places, strict=True)]
        if not subject.expected(case).refusal and not steps.judged(case.name, code, case, results):
            return


def _is_inside(subject: Subject, arguments: dict[str, Any]) -> bool:
    return not subject.op.why_outside(pytree.tree_map_only(Tensor, Tensor.clone, arguments))


def _slice(result: Any, dim: int, at: int) -> Any:
    return pytree.tree_map_only(Tensor, lambda tensor: tensor.select(dim, at), result)


def _code(subject: Subject, case: Case, in_dims: dict[str, Any]) -> str:
    names = repro.holders(case.arguments)

    def written(call: str) -> str:
        batches = ", ".join(_stacked(name, in_dims[name]) for name in names)
        dims = ", ".join(str(in_dims[name]) for name in names)
        return f"torch.vmap(lambda {', '.join(names)}: {call}, in_dims=({dims},))({batches})"

    return repro.instead(subject, case, written)


def _stacked(name: str, dims: Any) -> str:
    if isinstance(dims, (list, tuple)):
        return f"[{', '.join(_stacked(f'{name}[{at}]', dim) for at, dim in enumerate(dims))}]"
    return name if dims is None else f"torch.stack([{name}] * {_BATCH}, {dims})"
