"""Searches for calls of an operator beyond its samples: single variations, pairs of them, and bad inputs."""

from __future__ import annotations

import contextlib
import itertools
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from opwright.checker.cases.case import Case, Family
from opwright.checker.cases.combined import combined
from opwright.checker.cases.layouts import far_apart, layouts
from opwright.checker.cases.limits import integer_limits, size_limits
from opwright.checker.cases.options import options as other_options
from opwright.checker.cases.options import thresholds
from opwright.checker.cases.resized import resized
from opwright.checker.cases.samples import by_size, elements_in, redrawn
from opwright.checker.cases.shapes import ranks, unequal
from opwright.checker.cases.sharing import shared
from opwright.checker.cases.sizes import SPLIT_ROWS, Resizer
from opwright.checker.cases.values import contents
from opwright.checker.cases.variation import Variation, choice, replaced, replacing, tensors
from opwright.spec import Make, derive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from opwright.checker.cases.cost import Costs
    from opwright.checker.job import Options
    from opwright.spec import Op

_DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.int32)
# Each tensor alone is converted to these, so that its dtype differs from that of the other tensors.
_ALONE = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32)
_DEEP = (" one", " true", " sorted", " sorted, largest first")
# Bad integers and equal values are tried at the largest size of each dimension, if that is at least this.
_LARGE = 512
_TIES = (" zero", " with ties")
_BAD_INTEGERS = (" with one -1", " with one past the largest")
_EQUAL = (" constant", " with ties", " true")
# Only the smallest samples vary in layouts, sizes and values: photographs would take minutes.
_VARIED_SAMPLES = 2
_PAIRS = 300
_QUICK_PAIRS = 60
_NUMBERS_WITH_OPTIONS = 600
_QUICK_NUMBERS_WITH_OPTIONS = 60
_SHARED_WITH_OPTIONS = 100
_QUICK_SHARED_WITH_OPTIONS = 20
# Calls in which several sizes and options differ.
_COMBINED = 300
_QUICK_COMBINED = 40
_MOST_COMBINED_ELEMENTS = 2**20
# Samples other than the smallest are varied only up to this many elements.
_FEW_ELEMENTS = 2**16
# A quick check tries this many variations of a family.
_QUICK_OF_A_FAMILY = 40
# The minimum, for a family that never varies all tensors together.
_QUICK_ALONE = 8
_ALL = "all tensors "


def varied(op: Op, given: list[Case], device: str, options: Options, costs: Costs) -> list[Case]:
    """Return the samples `given` with one variation each."""
    smallest = by_size(given)
    chosen = sorted(smallest[: 1 if options.quick else _VARIED_SAMPLES])
    # Other samples may have options, tensors in a list, or sizes that the chosen ones do not have.
    others = [at for at in smallest if at not in chosen and elements_in(given[at].arguments) <= _FEW_ELEMENTS]
    rest = [] if options.quick else others
    resizer = Resizer(op, given, device, options)
    sizes = list(resizer.usual(chosen, others))
    beyond = resizer.beyond_launches(smallest[0]) if device == "cuda" else ()
    # These come first, because the others may use up the time for trials.
    largest = [] if options.quick else resizer.deepest(smallest[0])
    deep = [case for case in _deep(largest, options) if costs.is_affordable(case.arguments)]
    dtypes = list(_dtypes(op, given, chosen, device, options))
    cases = [
        *dtypes,
        *(case for at in chosen for case in _made(_layouts(op, given[at]), given[at])),
        *sizes,
        *beyond,
        *(case for one in sizes for case in _singular(op, one)),
        *(case for at in chosen for case in resized(given[at], _variations_of(given[at], sizes), quick=options.quick)),
        *(case for at in chosen for case in _others(op, given[at], options)),
        *resizer.fewest(others),
        *(case for at in others for case in _made(unequal(given[at]), given[at])),
        *(case for at in others for case in _made(_options_of_others(op, given[at], options), given[at])),
        *(case for at in others for case in _made(_ties(given[at], options), given[at])),
        *(case for other in dtypes for case in _numbers_in_dtype(op, other, given[smallest[0]], options)),
        *_large_with_bad_integers(sizes, options),
        *_large_with_equal_values(sizes, options),
        *_large_and_sorted(sizes, options),
        *_far(given[smallest[0]], op),
        *(case for at in (*chosen, *rest) for case in _made(_bad(given[at]), given[at])),
    ]
    by_name: dict[str, Case] = {}
    for case in cases:
        by_name.setdefault(case.name, case)
    return [*(case for case in by_name.values() if costs.is_affordable(case.arguments)), *deep]


def pairs(op: Op, given: list[Case], varied: list[Case], options: Options, costs: Costs) -> Iterator[Case]:
    """Yield random combinations of variations, of the samples `given` or of these with other sizes and dtypes."""
    choose = choice(options.seed)
    smallest = by_size(given)
    chosen = [given[at] for at in smallest[: 1 if options.quick else _VARIED_SAMPLES]]
    small = max(map(elements_in, (case.arguments for case in chosen)), default=0) * 4
    resized = [
        case for case in varied if case.family in (Family.SIZE, Family.DTYPE) and elements_in(case.arguments) <= small
    ]
    seen: set[str] = set()
    for _ in range(_QUICK_PAIRS if options.quick else _PAIRS):
        base = choose.choice(chosen if not resized or choose.random() < 1 / 2 else resized)
        groups = [
            list(contents(base, options.seed, thresholds(op, base))),
            list(other_options(op, base)),
            list(_layouts(op, base)),
            [*shared(op, base), *unequal(base)],
        ]
        there = [group for group in groups if group]
        # In the order of the groups: replacing values after a layout would lose the layout.
        picked = sorted(choose.sample(range(len(there)), min(2, len(there))))
        case = base
        try:
            for at in picked:
                case = choose.choice(there[at]).of(case)
        except Exception:
            continue
        if case is not base and case.name not in seen and costs.is_affordable(case.arguments):
            seen.add(case.name)
            yield Case(case.name, Family.PAIR, case.arguments)
    for case in (*_numbers_with_options(op, chosen[0], options), *_shared_with_options(op, chosen, options)):
        if case.name not in seen and costs.is_affordable(case.arguments):
            seen.add(case.name)
            yield case
    few = [given[at] for at in smallest if elements_in(given[at].arguments) <= _FEW_ELEMENTS] or chosen
    for case in combined(op, few, _QUICK_COMBINED if options.quick else _COMBINED, options.seed):
        if costs.is_affordable(case.arguments, _MOST_COMBINED_ELEMENTS):
            yield case


def limits(op: Op, given: list[Case], device: str, options: Options, costs: Costs) -> Iterator[Case]:
    """Yield the samples `given` with sizes and integers at, and just beyond, the limits that the reference accepts."""
    smallest = by_size(given)
    few = [at for at in smallest if elements_in(given[at].arguments) <= _FEW_ELEMENTS]
    resizer = Resizer(op, given, device, options)
    for at in smallest[:1] if options.quick else few or smallest[:1]:
        tried = list(size_limits(op, at, resizer.slots, costs, device, options.seed))
        integers = list(integer_limits(given[at], costs))
        # A product of a large option and the number of an element may overflow.
        split = [case for case in resizer.split(at) if costs.accepts(case.arguments) is not False] if integers else []
        cases = itertools.chain(
            resizer.with_sizes([at], tried), *(_made(integers, base) for base in (given[at], *split))
        )
        yield from (case for case in cases if costs.is_affordable(case.arguments))


def _numbers_with_options(op: Op, sample: Case, options: Options) -> Iterator[Case]:
    """Yield ties, halves, zeros and similar values with each option: at a scale of 1, for example, halves round."""
    found = contents(sample, options.seed, each=False)
    numbers = [one for one in found if one.family in (Family.EDGE, Family.INTEGER)]
    both = list(itertools.product(numbers, other_options(op, sample)))
    count = min(len(both), _QUICK_NUMBERS_WITH_OPTIONS if options.quick else _NUMBERS_WITH_OPTIONS)
    for number, option in choice(options.seed).sample(both, count):
        with contextlib.suppress(Exception):
            case = option.of(number.of(sample))
            yield Case(case.name, Family.PAIR, case.arguments)


def _shared_with_options(op: Op, chosen: list[Case], options: Options) -> Iterator[Case]:
    """Yield arguments in the memory of a mutated one with each option, which may select the part that is written."""
    if not op.mutates:
        return
    both = [(case, *two) for case in chosen for two in itertools.product(shared(op, case), other_options(op, case))]
    count = min(len(both), _QUICK_SHARED_WITH_OPTIONS if options.quick else _SHARED_WITH_OPTIONS)
    for sample, sharing, option in choice(options.seed).sample(both, count):
        with contextlib.suppress(Exception):
            case = option.of(sharing.of(sample))
            yield Case(case.name, Family.SHARED, case.arguments)


def _others(op: Op, case: Case, options: Options) -> Iterator[Case]:
    """Yield variations of the values, options, ranks, shapes and shared memory of one sample."""
    for variations in (
        contents(case, options.seed, thresholds(op, case)),
        other_options(op, case),
        ranks(case),
        unequal(case),
        shared(op, case),
    ):
        yield from _made(_some(op, case, list(variations), options), case)


def _options_of_others(op: Op, case: Case, options: Options) -> list[Variation]:
    """The options of a sample that is not varied otherwise; in a quick check the first of each, and random others."""
    found = list(other_options(op, case))
    if not options.quick:
        return found
    first = list({one.argument: one for one in reversed(found)}.values())
    rest = [one for one in found if one not in first]
    return [*first, *choice(options.seed).sample(rest, min(len(rest), max(_QUICK_ALONE - len(first), 0)))]


def _ties(case: Case, options: Options) -> Iterator[Variation]:
    """Yield zeros and ties, which the smallest sample may be too small to have: a row of one element has no ties."""
    return (one for one in contents(case, options.seed, each=False) if one.what.endswith(_TIES))


def _numbers_in_dtype(op: Op, case: Case, smallest: Case, options: Options) -> Iterator[Case]:
    """Yield other values in another dtype, whose range and precision differ; a random few if it is not claimed."""
    if not case.claimed and (options.quick or not case.name.startswith(f"{smallest.name} in ")):
        return
    # A domain may allow values in one tensor that it does not allow in all tensors together.
    numbers = _inside(op, case, list(contents(case, options.seed, each=op.has_domain)))
    if options.quick or not case.claimed:
        numbers = choice(options.seed).sample(numbers, min(len(numbers), _QUICK_ALONE))
    yield from _made(numbers, case)


def _large_with_bad_integers(sizes: list[Case], options: Options) -> Iterator[Case]:
    """Yield invalid indices in calls large enough for several threads: an error in a thread must reach the caller."""
    for case in _largest(sizes):
        yield from _made((one for one in contents(case, options.seed) if one.what.endswith(_BAD_INTEGERS)), case)


def _large_with_equal_values(sizes: list[Case], options: Options) -> Iterator[Case]:
    """Yield equal values across the blocks and threads of an operator that chooses, groups or joins them."""
    for case in _largest(sizes):
        numbers = contents(case, options.seed, each=False)
        yield from _made((one for one in numbers if one.what.endswith(_EQUAL)), case)


def _largest(sizes: list[Case]) -> Iterable[Case]:
    """The case of each dimension with the largest size."""
    largest: dict[str, Case] = {}
    for case in sizes:
        name, size = case.size or ("", 0)
        before = largest.get(name, case)
        if _LARGE <= size != SPLIT_ROWS and before.size is not None and size >= before.size[1]:
            largest[name] = case
    return largest.values()


def _large_and_sorted(sizes: list[Case], options: Options) -> Iterator[Case]:
    """Yield calls beyond 16 bits whose largest elements are the last, for operators that choose elements."""
    for case in sizes:
        if case.size is not None and case.size[1] == SPLIT_ROWS:
            numbers = contents(case, options.seed, each=False)
            yield from _made((one for one in numbers if one.what.endswith(" sorted")), case)


def _deep(largest: Iterable[Case], options: Options) -> Iterator[Case]:
    """Yield large calls with values that make an operator step from each element to the next."""
    for case in largest:
        numbers = contents(case, options.seed, each=False)
        yield from _made((one for one in numbers if one.what.endswith(_DEEP)), case)


def _made(variations: Iterable[Variation], case: Case) -> Iterator[Case]:
    """Yield `case` with each of the `variations` that apply; PyTorch cannot compute in some dtypes, such as uint16."""
    for one in variations:
        with contextlib.suppress(Exception):
            yield one.of(case)


def _inside(op: Op, case: Case, variations: list[Variation]) -> list[Variation]:
    """The `variations` with which `case` is inside the domain."""
    if not op.has_domain:
        return variations
    inside = []
    for one in variations:
        with contextlib.suppress(Exception):
            if not op.why_outside(one.of(case).fresh()):
                inside.append(one)
    return inside


def _some(op: Op, case: Case, variations: list[Variation], options: Options) -> Iterable[Variation]:
    """Return all `variations`, or in a quick check some of them: those of all tensors of a kind, and random others.

    If a variation of all tensors together is outside the domain, as with NaN, one tensor for which it is inside gets it
    alone. A mask gets all of its few variations: among those of other tensors, a random choice would miss most of them.
    """
    if not options.quick or len(variations) <= _QUICK_OF_A_FAMILY:
        return variations
    choose = choice(options.seed)
    inside = _inside(op, case, variations)
    masks = [path for path, tensor in tensors(case.arguments) if tensor.dtype == torch.bool]
    of_masks = [one for one in inside if one.argument in masks and one.family is Family.EDGE]
    of_all = [one for one in inside if one.what.startswith(_ALL) or one.is_of_only_tensor]
    first = [*of_all, *(one for one in of_masks if one not in of_all)]
    alone = {one.family for one in inside} - {one.family for one in first}
    for family in sorted(alone, key=lambda one: one.value):
        found = [one for one in inside if one.family is family]
        first += choose.sample(found, min(len(found), _QUICK_ALONE))
    for dropped in (one for one in variations if one.what.startswith(_ALL) and one not in inside):
        found = [one for one in inside if one.what == f"{one.argument} {dropped.what.removeprefix(_ALL)}"]
        first += choose.sample(found, min(len(found), 1))
    rest = [one for one in inside if one not in first]
    return [*first, *choose.sample(rest, max(0, min(len(rest), _QUICK_OF_A_FAMILY - len(first))))]


def _dtypes(op: Op, given: list[Case], chosen: list[int], device: str, options: Options) -> Iterator[Case]:
    for dtype in dict.fromkeys((*op.dtypes, *_DTYPES)):
        made = redrawn(op, Make(seed=options.seed, dtype=dtype, device=device), max(chosen) + 1)
        for at in chosen:
            if at < len(made) and _dtypes_of(made[at]) != _dtypes_of(given[at].arguments):
                name = f"{given[at].name} in {str(dtype).removeprefix('torch.')}"
                yield Case(name, Family.DTYPE, made[at], claimed=dtype in op.dtypes)


def _singular(op: Op, case: Case) -> Iterator[Case]:
    """Yield a call in which a size is 1, with other strides of that dimension."""
    if case.size is not None and case.size[1] == 1:
        yield from _made((one for one in _layouts(op, case) if one.what.endswith(" dimensions of 1")), case)


def _layouts(op: Op, case: Case) -> Iterator[Variation]:
    # PyTorch never resolves negative and conjugate views in a list of optional tensors, whatever the kernel.
    unresolved = {parameter.name for parameter in op.parameters if parameter.type == "List[Optional[Tensor]]"}
    for path, tensor in tensors(case.arguments):
        argument = path.partition("[")[0]
        for name, family, make in layouts(tensor, is_mutated=argument in op.mutates):
            if name.endswith(" view") and argument in unresolved:
                continue
            yield replacing(f"{path} {name}", family, path, make)


def _variations_of(sample: Case, cases: list[Case]) -> list[Case]:
    return [case for case in cases if case.name.startswith(f"{sample.name}, ")]


def _far(case: Case, op: Op) -> Iterator[Case]:
    for path, tensor in tensors(case.arguments):
        if path.partition("[")[0] in op.mutates:
            continue  # such memory is never copied: the reference and the operator would write to the same tensor
        if (far := far_apart(tensor)) is not None:
            what = f"{path} with rows more than 2^31 elements apart"
            yield Case(f"{case.name}, {what}", Family.FAR, replaced(case.arguments, path, far), argument=path)


def _bad(case: Case) -> Iterator[Variation]:
    several = len(tensors(case.arguments)) > 1
    for path, tensor in tensors(case.arguments):
        for dtype in _ALONE:
            if tensor.dtype != dtype and not tensor.is_complex():
                name = str(dtype).removeprefix("torch.")
                yield replacing(f"{path} alone in {name}", Family.BAD_DTYPE, path, _to(dtype))
        yield replacing(f"{path} with one more dimension", Family.BAD_RANK, path, lambda x: x.unsqueeze(0))
        if tensor.dim() > 0 and tensor.shape[0] > 0:
            yield replacing(f"{path} with one fewer dimension", Family.BAD_RANK, path, lambda x: x[0].clone())
        if tensor.dim() > 1:
            yield replacing(f"{path} flattened", Family.BAD_RANK, path, lambda x: x.flatten().clone())
        if several and tensor.device.type != "meta" and tensor.dim() > 0:
            yield replacing(f"{path} on the meta device", Family.BAD_DEVICE, path, _to("meta"))


def _to(target: torch.dtype | str) -> Callable[[Tensor], Tensor]:
    return lambda tensor: tensor.to(target)


def _dtypes_of(arguments: dict[str, Any]) -> list[torch.dtype]:
    return [tensor.dtype for tensor in derive.tensors(arguments)]
