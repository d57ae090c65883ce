"""Varies the sizes of tensors that samples make without a size of `Make`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from opwright.checker.cases.case import Case, size_family
from opwright.spec import derive

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

# The size minus one and plus one are tried too.
_SIZES = (0, 1, 2, 9, 17, 33)
_QUICK_SIZES = (0, 1, 17)
_MOST_SIZES_VARIED = 4
_MOST_ELEMENTS = 2**21
# The relative difference between values and their repetitions, and the number of repetitions without it.
_SMALLER = 1e-3
_EQUAL_REPEATS = 4
# The dtypes that can represent that difference.
_PRECISE = (torch.float32, torch.float64, torch.complex64, torch.complex128)


def resized(case: Case, others: Sequence[Case], *, quick: bool) -> Iterator[Case]:
    """Yield calls in which a size of `case` is changed wherever it occurs: tensors are truncated or repeated.

    The reference decides whether such a call is valid.

    Args:
        case: the call.
        others: its variations in size so far. Tensors that one of them resizes are not changed.
        quick: whether to try fewer sizes.
    """
    fixed = _fixed(case, others)
    given = derive.tensors(case.arguments)
    by_size: dict[int, set[tuple[int, int]]] = {}
    for at, dim in fixed:
        by_size.setdefault(given[at].shape[dim], set()).add((at, dim))
    for old, places in list(by_size.items())[:_MOST_SIZES_VARIED]:
        for new in dict.fromkeys((old - 1, old + 1, *(_QUICK_SIZES if quick else _SIZES))):
            if old in (0, new) or sum(map(Tensor.numel, given)) * new // old > _MOST_ELEMENTS:
                continue
            what = f"{case.name}, dimensions of {old}"
            made = with_sizes(case.arguments, dict.fromkeys(places, new))
            yield Case(f"{what} as {new}", size_family(new), made, size=(what, new))


def _fixed(case: Case, others: Sequence[Case]) -> list[tuple[int, int]]:
    """The dimensions of tensors that no other case resizes, as (index of the tensor, index of the dimension)."""
    shapes = [[tensor.shape for tensor in derive.tensors(one.arguments)] for one in (case, *others)]
    alike = [one for one in shapes if len(one) == len(shapes[0])]
    return [
        (at, dim)
        for at, shape in enumerate(shapes[0])
        if all(one[at] == shape for one in alike)
        for dim in range(len(shape))
    ]


def with_sizes(arguments: dict[str, Any], sizes: Mapping[tuple[int, int], int]) -> dict[str, Any]:
    """Resize `arguments`: tensors are truncated or repeated.

    Non-integer values that are repeated often are reduced by up to a thousandth: the rounding errors of a sum of equal
    values would all have the same sign, and accumulate more than those of other values. A few repetitions stay equal,
    because operators treat ties differently.

    Args:
        arguments: the arguments of a call.
        sizes: the new sizes, by (index of the tensor, index of the dimension).
    """
    numbers = iter(range(len(derive.tensors(arguments))))

    def resize(tensor: Tensor) -> Tensor:
        at = next(numbers)
        for dim in range(tensor.dim()):
            if (at, dim) in sizes:
                size = tensor.shape[dim]
                index = torch.arange(sizes[at, dim], device=tensor.device) % size
                tensor = _with_other_repeats(tensor.index_select(dim, index), dim, size)
        return tensor

    made: dict[str, Any] = pytree.tree_map_only(Tensor, resize, arguments)
    return made


def _with_other_repeats(tensor: Tensor, dim: int, size: int) -> Tensor:
    """Change the values of `tensor`, whose first `size` rows along `dim` repeat, where they repeat often."""
    equal = _EQUAL_REPEATS * size
    if tensor.shape[dim] <= equal or tensor.dtype not in _PRECISE:
        return tensor
    if not tensor.is_complex() and bool((tensor == tensor.round()).all()):
        return tensor
    smaller = torch.rand(tensor.shape, generator=torch.Generator().manual_seed(dim), dtype=torch.float64)
    factor = 1 - _SMALLER * smaller
    factor.narrow(dim, 0, equal).fill_(1)
    return tensor * factor.to(tensor.device, tensor.dtype)
