"""Makes arguments share memory: the same tensor for two arguments, and views that overlap."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from opwright.checker.cases.case import Family
from opwright.checker.cases.variation import Arguments, Change, Variation, replaced, tensor_at, tensors

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import Tensor

    from opwright.checker.cases.case import Case
    from opwright.spec import Op


def shared(op: Op, case: Case) -> Iterator[Variation]:
    """Yield variations in which two arguments share memory; the operator writes to at most one of them."""
    found = [(path, tensor) for path, tensor in tensors(case.arguments) if tensor.numel() and not tensor.is_meta]
    written = [entry for entry in found if entry[0].partition("[")[0] in op.mutates]
    read = [entry for entry in found if entry not in written]
    yield from _two_read(read)
    for (one, first), (other, second) in itertools.product(written, read):
        if first.dtype != second.dtype:
            continue
        if first.shape == second.shape:
            yield Variation(f"{one} and {other} the same tensor", Family.SHARED, _same(one, other))
        elif first.numel() > second.numel():
            yield Variation(f"{other} in the memory of {one}", Family.SHARED, _inside(one, other))
        else:
            yield Variation(f"{one} in the memory of {other}", Family.SHARED, _inside(other, one))


def _two_read(read: Sequence[tuple[str, Tensor]]) -> Iterator[Variation]:
    for (one, first), (other, second) in itertools.combinations(read, 2):
        if first.dtype != second.dtype or first.shape != second.shape:
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


def _inside(outer: str, inner: str) -> Change:
    def change(given: Arguments) -> Arguments:
        memory, small = tensor_at(given, outer).contiguous(), tensor_at(given, inner)
        part = memory.view(-1)[: small.numel()].view(small.shape)
        return replaced(replaced(given, outer, memory), inner, part)

    return change


def writes_to_shared_memory(op: Op, arguments: Arguments) -> bool:
    """Whether an argument that the operator writes to shares memory with another argument."""
    found = [(path.partition("[")[0] in op.mutates, _storage(tensor)) for path, tensor in tensors(arguments)]
    return any(one == other and (first or second) for (first, one), (second, other) in itertools.combinations(found, 2))


def _storage(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)
