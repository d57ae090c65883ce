"""Chooses trials: subsets of the arguments and results, incoming gradients, and variations of calls."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, TypeVar

from opwright.checker.cases.case import Case, Family
from opwright.checker.cases.samples import elements_in
from opwright.checker.cases.variation import choice, tensors
from opwright.checker.gradients.trial import Incoming, Trial, applies
from opwright.spec import derive

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from opwright.checker.subject import Subject

T = TypeVar("T")

# The number of variations of each family in a quick and in a full check. Gradients differ most often at zeros and ties.
# NaN and infinities are left out, because there the derivative of a reference depends on how its formula is written.
_MOST = {
    Family.EDGE: (10, 80),
    Family.NUMBER: (3, 24),
    Family.SPECIAL: (1, 8),
    Family.MAGNITUDE: (2, 30),
    Family.STRIDES: (4, 30),
    Family.OFFSET: (1, 6),
    Family.SIZE: (3, 40),
    Family.EMPTY: (1, 6),
    Family.UNEQUAL: (3, 6),
    Family.RANK: (1, 6),
    Family.OPTION: (3, 30),
    Family.SHARED: (2, 10),
    Family.DTYPE: (1, 8),
    Family.BAD_DTYPE: (1, 10),
}
# Where gradients differ most often; other variations of the family, such as sorted values, rarely show a new fault.
_ZEROS_AND_TIES = (" zero", " half zero", " constant", " with ties", " of small integers")
_PAIRS = 30
_SUBSETS = (8, 40)
_RESULT_SUBSETS = (4, 20)
# A trial computes several gradients, some in float64, so of larger calls only that with the largest size is tried.
_MANY_ELEMENTS = 2**15


def trials(subject: Subject, cases: list[Case]) -> Iterator[Trial]:
    """Yield trials in addition to requesting all gradients of the samples `cases`."""
    choose = choice(subject.options.seed)
    # The first sample may omit optional arguments.
    case = max(cases, key=lambda case: len(_paths(subject, case)))
    yield from _subsets(subject, case, choose)
    yield from _results(subject, case, choose)
    yield from _incoming(subject, case)
    for family, most in _MOST.items():
        for other in _chosen(subject, family, _limit(subject, most), choose):
            yield Trial(other, "all gradients", tuple(subject.floating(other)))
    if not subject.options.quick:
        pairs = (other for other in subject.pairs() if _is_finite(other) and subject.differentiable(other))
        for other in itertools.islice(pairs, _PAIRS):
            paths = _paths(subject, other)
            some = sorted(choose.sample(paths, choose.randint(1, len(paths))))
            yield Trial(other, f"the gradients of {', '.join(some)}", tuple(some))


def _limit(subject: Subject, most: tuple[int, int]) -> int:
    return most[0] if subject.options.quick else most[1]


def _paths(subject: Subject, case: Case) -> list[str]:
    """The paths of the tensors of `case` that have a gradient, with a path for each element of a list."""
    names = subject.differentiable(case)
    return [
        path
        for path, tensor in tensors(case.arguments)
        if path.partition("[")[0] in names and derive.has_gradient(tensor)
    ]


def _subsets(subject: Subject, case: Case, choose: random.Random) -> Iterator[Trial]:
    """Yield each argument alone, and then pairs; the other arguments do not require a gradient."""
    paths = _paths(subject, case)
    alone = [(path,) for path in paths] if len(paths) > 1 else []
    pairs = list(itertools.combinations(paths, 2)) if len(paths) > 2 else []
    most = _limit(subject, _SUBSETS)
    # At least half of the trials are pairs, if there are enough pairs.
    singles = _some(alone, max(most - len(pairs), most // 2), choose)
    for chosen in (*singles, *_some(pairs, most - len(singles), choose)):
        word = "gradient" if len(chosen) == 1 else "gradients"
        yield Trial(case, f"the {word} of {' and '.join(chosen)} alone", tuple(chosen))


def _results(subject: Subject, case: Case, choose: random.Random) -> Iterator[Trial]:
    """Yield each result alone, for all arguments and for each argument alone, and pairs of results."""
    paths = tuple(_paths(subject, case))
    count = sum(map(derive.has_gradient, derive.tensors(list(subject.expected(case).own))))
    if count < 2:
        return
    results: list[tuple[int, ...]] = [(used,) for used in range(count)]
    further: list[tuple[tuple[int, ...], tuple[str, ...]]] = [
        (used, (path,)) for used in results for path in paths if len(paths) > 1
    ]
    further += [(used, paths) for used in itertools.combinations(range(count), 2) if count > 2]
    most = _limit(subject, _RESULT_SUBSETS)
    first = _some(results, most, choose)
    for used, wanted in [*((one, paths) for one in first), *_some(further, most - len(first), choose)]:
        word = "result" if len(used) == 1 else "results"
        of = "" if wanted == paths else f", the gradient of {wanted[0]}"
        yield Trial(case, f"from {word} {' and '.join(map(str, used))} alone{of}", wanted, used=used)


def _incoming(subject: Subject, case: Case) -> Iterator[Trial]:
    results = derive.tensors(list(subject.expected(case).own))
    for one in Incoming:
        if one is not Incoming.PLAIN and applies(one, results):
            yield Trial(case, f"the incoming gradient {one.value}", tuple(_paths(subject, case)), incoming=one)


def _chosen(subject: Subject, family: Family, most: int, choose: random.Random) -> list[Case]:
    """Choose up to `most` variations of a family that have gradients: the most telling ones, and random others."""
    there = [case for case in subject.varied if case.family is family and not case.claimed and _is_finite(case)]
    sizes = sorted(there, key=lambda case: elements_in(case.arguments))
    small = [case for case in sizes if elements_in(case.arguments) <= _MANY_ELEMENTS]
    first: list[list[Case]] = []
    if family is Family.SIZE:
        first = [[*sizes[:1], *sizes[-1:]]]
    elif family is Family.EDGE:
        together = [case for case in small if _varies_all(case)]
        ties = [case for case in together if case.name.endswith(_ZEROS_AND_TIES)]
        first = [ties, [case for case in together if case not in ties]]
    known = [case for group in first for case in group]
    rest = [case for case in small if case not in known]
    ordered = [*(case for group in first for case in _some(group, most, choose)), *_some(rest, len(rest), choose)]
    # More than `most`, because the reference may reject some of them.
    tried = itertools.islice(ordered, 3 * most)
    return list(itertools.islice((case for case in tried if subject.differentiable(case)), most))


def _varies_all(case: Case) -> bool:
    """Whether the values of all tensors vary that have a gradient, of which there may be only one."""
    return ", all tensors " in case.name or sum(map(derive.has_gradient, derive.tensors(case.arguments))) == 1


def _some(given: list[T], most: int, choose: random.Random) -> list[T]:
    return choose.sample(given, min(most, len(given))) if most > 0 else []


def _is_finite(case: Case) -> bool:
    numbers = filter(derive.has_gradient, derive.tensors(case.arguments))
    return all(not tensor.is_meta and bool(tensor.isfinite().all()) for tensor in numbers)
