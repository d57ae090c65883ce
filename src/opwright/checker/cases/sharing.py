"""Arguments that share memory: the same tensor for two of them, and views that overlap."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from opwright.checker.cases.case import Family
from opwright.checker.cases.variation import Arguments, Change, Variation, replaced, tensor_at, tensors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.checker.cases.case import Case
    from opwright.spec import Op


def shared(op: Op, case: Case) -> Iterator[Variation]:
    """Variations in which two arguments share memory; none of them is written to."""
    found = [(path, tensor) for path, tensor in tensors(case.arguments) if path.partition("[")[0] not in op.mutates]
    for (one, first), (other, second) in itertools.combinations(found, 2):
        if first.dtype != second.dtype or first.shape != second.shape or not first.numel():
            continue
        yield Variation(f"{one} and {other} the same tensor", Family.SHARED, _same(one, other))
        if first.dim() and first.shape[0] > 1:
            yield Variation(f"{one} and {other} in overlapping memory", Family.SHARED, _overlapping(one, other))


def _same(one: str, other: str) -> Change:
    return lambda given: replaced(given, other, tensor_at(given, one))


def _overlapping(one: str, other: str) -> Change:
    def change(given: Arguments) -> Arguments:
        first, second = tensor_at(given, one), tensor_at(given, other)
        memory = first.new_empty((first.shape[0] + 1, *first.shape[1:]))
        memory[0] = first[0]
        memory[1:] = second
        return replaced(replaced(given, one, memory[:-1]), other, memory[1:])

    return change
