"""Shrinks a failing case to a smaller one that still fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opwright.checker.cases.case import Case, Family
from opwright.checker.cases.samples import elements_in
from opwright.checker.cases.variation import Arguments, replaced, tensors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch import Tensor

_MOST_TRIALS = 60
# In these families, a smaller tensor would be a different case.
_FIXED = {Family.SAMPLE, Family.SIZE, Family.EMPTY, Family.UNEQUAL, Family.FAR}
_WRITTEN_OUT = 6


def smallest(case: Case, fails: Callable[[Case], bool]) -> Case:
    """Return the smallest case found that `fails`: cut all dimensions of one size together, or one dimension.

    Args:
        case: a case that fails.
        fails: returns whether a smaller case, which the reference may reject, fails in the same way.
    """
    if case.family in _FIXED:
        return case
    name, trials = case.name, 0
    found = True
    while found and trials < _MOST_TRIALS and elements_in(case.arguments) > _WRITTEN_OUT:
        found = False
        for arguments in _cut(case.arguments):
            trials += 1
            smaller = Case(f"{name}, made smaller (trial {trials})", case.family, arguments, argument=case.argument)
            if fails(smaller):
                case, found = smaller, True
                break
            if trials >= _MOST_TRIALS:
                break
    return case


def _cut(given: Arguments) -> Iterator[Arguments]:
    """Yield smaller arguments: half of all dimensions of a size, or of one; then all but one row of them."""
    places = [(path, dim, tensor.shape[dim]) for path, tensor in tensors(given) for dim in range(tensor.dim())]
    sizes = sorted({size for *_, size in places if size > 1}, reverse=True)
    groups = [[place for place in places if place[2] == size] for size in sizes]
    alone = [[place] for group in groups if len(group) > 1 for place in group]
    # All halves first: single rows would use up the trials.
    for is_half in (True, False):
        for group in (*groups, *alone):
            size = group[0][2]
            halves, rest = ((0, size // 2), (size // 2, size - size // 2)), ((0, size - 1), (1, size - 1))
            for start, length in halves if is_half else rest:
                made = given
                for path, dim, _ in group:
                    made = replaced(made, path, _narrowed(dict(tensors(made))[path], dim, start, length))
                yield made


def _narrowed(tensor: Tensor, dim: int, start: int, length: int) -> Tensor:
    """Part of a tensor; contiguous if the tensor is, because other strides may show another fault."""
    part = tensor.narrow(dim, start, length)
    return part.contiguous() if tensor.is_contiguous() else part
