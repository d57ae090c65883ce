"""`torch.vmap`, if it is claimed: checks that a batch returns the same results as its calls one by one."""

from __future__ import annotations

import itertools
import math
import warnings
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from opwright.checker.behavior.same_call import shifted_case
from opwright.checker.cases.case import Case, Family
from opwright.checker.cases.samples import constants, elements_in, samples
from opwright.checker.cases.variation import choice
from opwright.checker.kinds import Kind
from opwright.checker.models import repro, source
from opwright.checker.steps import Steps
from opwright.checker.verdict import Failure
from opwright.spec import derive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject

NAME = "vmap"

_BATCH = 3
# The number of ways to map the tensors of one sample, in a quick check and in a full one.
_QUICK_MAPPINGS = 10
_MAPPINGS = 32
# The number of variations of each family whose batches are checked, in a quick check and in a full one.
_VARIED = {
    Family.OPTION: (6, 40),
    Family.RANK: (2, 8),
    Family.SIZE: (2, 20),
    Family.EMPTY: (1, 6),
    Family.UNEQUAL: (1, 8),
    Family.STRIDES: (2, 10),
    Family.DTYPE: (1, 6),
    Family.INTEGER: (4, 20),
    Family.EDGE: (1, 6),
    Family.SPECIAL: (1, 6),
}
# Many rules add an offset to each index; they must not add it to the index that stands for no element.
_PADDING = " with one -1"
_MOST_ELEMENTS = 2**16
# Up to this number, all combinations are listed and a random subset is used; beyond it, each is drawn independently.
_MOST_LISTED = 4096


def why_not(subject: Subject) -> str:
    """Why there is nothing to check."""
    if not subject.op.claims_vmap:
        return "not claimed; @library.op(vmap=True) claims it"
    if not derive.tensors(subject.samples[0].arguments):
        return "torch.vmap requires tensor arguments, and the operator has none"
    return ""


def run(subject: Subject, recorder: Recorder) -> None:
    """Run batches of samples, along each dimension of each tensor and with shared tensors; then of variations."""
    steps = Steps(subject, recorder)
    # The author's own calls, each time with other numbers.
    draws = [samples(subject.op, subject.device, subject.options.seed + by) for by in range(_BATCH)]
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        for calls in zip(*draws, strict=False):
            if not subject.expected(calls[0]).refusal:
                own = constants(calls[0])
                _check(steps, [call if constants(call) == own else calls[0] for call in calls])
        if not recorder.failed:
            for case in _varied(subject):
                _check_varied(steps, case)


def _varied(subject: Subject) -> Iterator[Case]:
    """Variations of the samples whose batches a vmap rule might handle differently."""
    choose = choice(subject.options.seed)
    for family, counts in _VARIED.items():
        found = [case for case in subject.varied if case.family is family]
        found = [case for case in found if 0 < elements_in(case.arguments) <= _MOST_ELEMENTS and _places(case)]
        drawn = choose.sample(found, len(found))
        padding = (case for case in drawn if case.name.endswith(_PADDING) and _is_accepted(subject, case))
        first = list(itertools.islice(padding, 1))
        accepted = (case for case in drawn if case not in first and _is_accepted(subject, case))
        yield from itertools.islice(itertools.chain(first, accepted), counts[not subject.options.quick])


def _check_varied(steps: Steps, case: Case) -> None:
    """Batch a variation with the same call for other numbers, unless eager mode rejects it."""
    calls = [case, *(shifted_case(steps.subject, case, by) for by in range(1, _BATCH))]
    if not steps.recorder.begin(f"{case.name}, alone", steps.subject.code(case), group=case.group):
        return
    try:
        steps.subject.call(case.fresh())
    except Exception:
        return
    for how, dim in (("batches in front", 0), ("batches last", -1)):
        _check_mapped(steps, calls, how, dict.fromkeys(_places(case), dim))


def _check(steps: Steps, calls: Sequence[Case]) -> None:
    for how, dims in _mappings(steps.subject, calls[0]):
        _check_mapped(steps, calls, how, dims)
    if steps.recorder.failed:
        return
    front = dict.fromkeys(_places(calls[0]), 0)
    _check_mapped(steps, calls[:1], "a batch of one", front)
    _check_nested(steps, calls, front)
    _check_empty(steps, calls[0], front)


def _places(case: Case) -> list[int]:
    """The leaves of the arguments that are tensors."""
    leaves = pytree.tree_leaves(case.arguments)
    return [at for at, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]


def _mappings(subject: Subject, case: Case) -> Iterator[tuple[str, dict[int, int]]]:
    """Ways to map the tensors of `case`: a description, and the mapped dimension of each; other tensors are shared."""
    leaves, places = pytree.tree_leaves(case.arguments), _places(case)
    names = dict(zip(places, source.tensor_names(case.arguments), strict=True))
    owners = [name for name, value in case.arguments.items() for _ in derive.tensors(value)]
    # Calls cannot share an argument that they mutate.
    mutated = {at for at, owner in zip(places, owners, strict=True) if owner in subject.op.mutates}
    choices = {at: _dims(leaves[at], shared=at not in mutated) for at in places}
    yield "batches in front", dict.fromkeys(places, 0)
    yield "batches last", dict.fromkeys(places, -1)
    shared = [{other: 0 for other in places if other != at} for at in places if at not in mutated]
    alone = [{at: 0} for at in places] if len(places) > 2 and not mutated else []
    basic = [dims for dims in (*shared, *alone) if dims]
    every = math.prod(map(len, choices.values()))
    most = _QUICK_MAPPINGS if subject.options.quick else _MAPPINGS
    choose = choice(subject.options.seed)
    drawn = (
        list(itertools.product(*choices.values()))
        if every <= _MOST_LISTED
        else [tuple(map(choose.choice, choices.values())) for _ in range(most)]
    )
    mixed = [{at: dim for at, dim in zip(places, some, strict=True) if dim is not None} for some in drawn]
    seen = [dict.fromkeys(places, 0), dict.fromkeys(places, -1)]
    for dims in (*basic, *choose.sample(mixed, len(mixed))):
        if len(seen) >= most:
            return
        if dims and dims not in seen:
            seen.append(dims)
            yield ", ".join(_described(names[at], dims.get(at)) for at in places), dims


def _dims(tensor: Tensor, *, shared: bool) -> list[int | None]:
    """The positions for the batch dimension of `tensor`; None if all calls share the tensor."""
    middle = [tensor.dim() // 2 or 1] if tensor.dim() > 1 else []
    return [0, -1, *middle, *([None] if shared else [])]


def _described(name: str, dim: int | None) -> str:
    if dim is None:
        return f"all calls share {name}"
    return f"{name} {'in front' if dim == 0 else 'last' if dim == -1 else f'in dimension {dim}'}"


def _singles(calls: Sequence[Case], dims: Mapping[int, int]) -> list[list[Any]]:
    """The leaves of the arguments of each call of a batch; unmapped ones are those of the first call."""
    first, *others = (pytree.tree_leaves(call.fresh()) for call in calls)
    return [[leaf if at in dims else first[at] for at, leaf in enumerate(own)] for own in (first, *others)]


def _stacked_leaves(singles: Sequence[Sequence[Any]], dims: Mapping[int, int]) -> list[Any]:
    return [torch.stack(own, dims[at]) if at in dims else own[0] for at, own in enumerate(zip(*singles, strict=True))]


def _check_mapped(steps: Steps, calls: Sequence[Case], how: str, dims: dict[int, int]) -> None:
    """Check one way to map; `dims` holds the mapped dimension of each leaf of the arguments."""
    subject = steps.subject
    step = f"{calls[0].name}, {how}"
    shape = pytree.tree_structure(calls[0].arguments)
    singles = _singles(calls, dims)
    cases = _cases(calls, singles, dims)
    if not all(_is_accepted(subject, case) for case in cases):
        return  # the tensors of one call do not fit those of another
    batched = _stacked_leaves(singles, dims)
    arguments = pytree.tree_unflatten(batched, shape)
    in_dims = pytree.tree_unflatten([dims.get(at) for at in range(len(batched))], shape)
    code = _code(subject, calls[0], in_dims, len(calls))

    def batch() -> list[Any]:
        function = torch.vmap(_one_call(subject, arguments), in_dims=tuple(in_dims.values()))
        return subject.outcome(function(*arguments.values()), arguments)

    if calls[0].claimed or calls[0].family is Family.SAMPLE:
        outcome = steps.do(step, code, batch)
    else:
        outcome = _do_unless_rejected(steps, step, code, batch)
    if outcome is None:
        return
    # Results are mapped along the first dimension, mutated arguments along their own.
    returned = len(outcome) - len(subject.op.mutates)
    places = [*([0] * returned), *(_first_dim(in_dims[name]) for name in subject.op.mutates)]
    for at, case in enumerate(cases):
        results = [_slice(result, dim, at) for result, dim in zip(outcome, places, strict=True)]
        if not steps.judged(f"{step}: call {at} of {len(calls)}", code, case, results):
            return


def _do_unless_rejected(steps: Steps, step: str, code: str, action: Callable[[], list[Any]]) -> list[Any] | None:
    """Perform `action`, which is allowed to raise, and return its result; None if it raised."""
    if not steps.recorder.begin(step, code):
        return None
    try:
        return action()
    except Exception:
        steps.recorder.rejected()
        return None


def _check_nested(steps: Steps, calls: Sequence[Case], dims: dict[int, int]) -> None:
    """Map a mapped function: two batches of the calls, the second in reverse order."""
    subject = steps.subject
    step = f"{calls[0].name}, vmap of vmap"
    if subject.op.mutates:
        return  # each level returns mutated results in a different form, so only one level is checked
    shape = pytree.tree_structure(calls[0].arguments)
    singles = _singles(calls, dims)
    cases = _cases(calls, singles, dims)
    if not all(_is_accepted(subject, case) for case in cases):
        return
    rows = [_stacked_leaves(one, dims) for one in (singles, singles[::-1])]
    arguments = pytree.tree_unflatten(_stacked_leaves(rows, dims), shape)
    in_dims = pytree.tree_unflatten([dims.get(at) for at in range(len(singles[0]))], shape)
    code = _code(subject, calls[0], in_dims, len(calls))

    def batch() -> list[Any]:
        given = tuple(in_dims.values())
        function = torch.vmap(torch.vmap(_one_call(subject, arguments), in_dims=given), in_dims=given)
        return subject.outcome(function(*arguments.values()), arguments)

    outcome = steps.do(step, code, batch)
    for row, order in enumerate((range(len(calls)), reversed(range(len(calls)))) if outcome is not None else ()):
        for at, number in enumerate(order):
            results = [_slice(_slice(result, 0, row), 0, at) for result in outcome or ()]
            if not steps.judged(f"{step}: row {row}: call {number} of {len(calls)}", code, cases[number], results):
                return


def _check_empty(steps: Steps, case: Case, dims: dict[int, int]) -> None:
    """Map over an empty batch, which most of PyTorch's operators support: the shapes must be the same."""
    subject = steps.subject
    step = f"{case.name}, an empty batch"
    leaves, shape = pytree.tree_flatten(case.fresh())
    empty = [leaf[None][:0] if at in dims else leaf for at, leaf in enumerate(leaves)]
    arguments = pytree.tree_unflatten(empty, shape)
    in_dims = pytree.tree_unflatten([dims.get(at) for at in range(len(leaves))], shape)
    code = _code(subject, case, in_dims, 0)
    if subject.op.mutates or not steps.recorder.begin(step, code):
        return
    try:
        results = torch.vmap(_one_call(subject, arguments), in_dims=tuple(in_dims.values()))(*arguments.values())
    except Exception:
        steps.recorder.rejected()  # as PyTorch's own rules do for several operators
        return
    shapes = [tuple(tensor.shape) for tensor in derive.tensors(results)]
    wanted = [(0, *tensor.shape) for tensor in derive.tensors(list(subject.expected(case).own))]
    if shapes == wanted:
        steps.recorder.ok()
    else:
        steps.recorder.fail(Failure(Kind.RESULT_TYPE, step, code, f"results of shapes {shapes}", f"{wanted}"))


def _one_call(subject: Subject, arguments: Mapping[str, Any]) -> Callable[..., Any]:
    def one_call(*values: Any) -> Any:
        positional, keywords = subject.op.spread(dict(zip(arguments, values, strict=True)))
        return subject.overload(*positional, **keywords)

    return one_call


def _cases(calls: Sequence[Case], singles: Sequence[Sequence[Any]], dims: Mapping[int, int]) -> list[Case]:
    """Each call of a batch as a separate case."""
    # Calls with the same tensors have the same name, so their expected results are computed only once.
    mapped = ", ".join(map(str, sorted(dims)))
    shape = pytree.tree_structure(calls[0].arguments)
    return [
        Case(
            f"{calls[0].name}, call {at} of a batch that maps {mapped}",
            calls[0].family,
            pytree.tree_unflatten(list(single), shape),
        )
        for at, single in enumerate(singles)
    ]


def _first_dim(in_dims: Any) -> int:
    dims: list[int | None] = pytree.tree_leaves(in_dims)
    return next(dim for dim in dims if dim is not None)


def _is_accepted(subject: Subject, case: Case) -> bool:
    """Whether a call is inside the domain, and the reference accepts it."""
    return not (subject.is_outside(case) or subject.expected(case).refusal)


def _slice(result: Any, dim: int, at: int) -> Any:
    return pytree.tree_map_only(Tensor, lambda tensor: tensor.select(dim, at), result)


def _code(subject: Subject, case: Case, in_dims: dict[str, Any], count: int) -> str:
    names = repro.holders(case.arguments)

    def written(call: str) -> str:
        mapped = [in_dims[name] for name, value in case.arguments.items() if derive.tensors(value)]
        batches = ", ".join(_stacked(name, dims, count) for name, dims in zip(names, mapped, strict=True))
        return f"torch.vmap(lambda {', '.join(names)}: {call}, in_dims=({', '.join(map(str, mapped))},))({batches})"

    return repro.instead(subject, case, written)


def _stacked(name: str, dims: Any, count: int) -> str:
    if isinstance(dims, (list, tuple)):
        return f"[{', '.join(_stacked(f'{name}[{at}]', dim, count) for at, dim in enumerate(dims))}]"
    if count == 0 and dims is not None:
        return f"{name}[None][:0]"
    return name if dims is None else f"torch.stack([{name}] * {count}, {dims})"
