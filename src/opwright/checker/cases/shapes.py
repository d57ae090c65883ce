"""Varies the ranks of tensors, and makes accidentally equal dimensions unequal."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from opwright.checker.cases.case import Family
from opwright.checker.cases.variation import Arguments, Change, Variation, replaced, tensor_at, tensors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opwright.checker.cases.case import Case

_LARGEST_RANK = 8
_MOST_DIMENSIONS = 12  # in all tensors together, because pairs of them are varied

# A dimension: the path of its tensor, and its index.
Place = tuple[str, int]


def ranks(case: Case) -> Iterator[Variation]:
    """Yield other ranks of all tensors together: single elements, flattened, and up to eight dimensions."""
    found = [(path, tensor) for path, tensor in tensors(case.arguments) if tensor.numel()]
    if not found:
        return
    yield Variation("all tensors with one element", Family.RANK, _each(lambda x: x.flatten()[0].clone()))
    yield Variation("all tensors flattened", Family.RANK, _each(lambda x: x.flatten().clone()))
    for rank in range(max(tensor.dim() for _, tensor in found) + 1, _LARGEST_RANK + 1):
        yield Variation(f"all tensors with {rank} dimensions", Family.RANK, _each(_with_rank(rank)))
    if all(tensor.dim() for _, tensor in found):
        yield Variation(
            "all tensors with a new first dimension of two", Family.RANK, _each(lambda x: torch.stack([x, x.flip(0)]))
        )
        yield Variation(
            "all tensors with a new last dimension of two", Family.RANK, _each(lambda x: torch.stack([x, x], -1))
        )


def unequal(case: Case) -> Iterator[Variation]:
    """Yield each dimension one longer or shorter, alone and together with another one of the same size.

    Dimensions that are equal only by accident then differ; if they must be equal, the reference rejects the call.
    """
    places = [(path, dim) for path, tensor in tensors(case.arguments) for dim in range(tensor.dim())][:_MOST_DIMENSIONS]
    for count in (1, 2):
        for chosen in itertools.combinations(places, count):
            sizes = {tensor_at(case.arguments, path).shape[dim] for path, dim in chosen}
            if len(sizes) > 1 or not min(sizes):
                continue
            for longer in (True, False):
                if longer or min(sizes) > 1:
                    yield _resized(chosen, longer=longer)


def _resized(places: tuple[Place, ...], *, longer: bool) -> Variation:
    words = " and ".join(f"dimension {dim} of {path}" for path, dim in places)

    def change(given: Arguments) -> Arguments:
        for path, dim in places:
            tensor = tensor_at(given, path)
            if longer:
                other = torch.cat([tensor, tensor.narrow(dim, 0, 1)], dim)
            else:
                other = tensor.narrow(dim, 0, tensor.shape[dim] - 1).clone(memory_format=torch.contiguous_format)
            given = replaced(given, path, other)
        return given

    return Variation(f"{words} one {'longer' if longer else 'shorter'}", Family.UNEQUAL, change)


def _each(make: Callable[[Tensor], Tensor]) -> Change:
    def change(given: Arguments) -> Arguments:
        for path, tensor in tensors(given):
            if tensor.numel():
                given = replaced(given, path, make(tensor))
        return given

    return change


def _with_rank(rank: int) -> Callable[[Tensor], Tensor]:
    return lambda x: x.reshape((1,) * (rank - x.dim()) + tuple(x.shape)).clone()
