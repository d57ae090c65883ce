"""Compares the samples of an operator in two processes, which must draw the same ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opwright.checker.cases.case import Case

# Of larger tensors, this number of evenly spaced elements is compared.
_MOST_ELEMENTS = 4096
# Samples that PyTorch computes from the same numbers differ by less, even with a different number of threads.
_TOLERANCE = 1e-3


def excerpt(cases: Sequence[Case]) -> list[list[Any]]:
    """The shapes, dtypes and some elements of the tensors of each call, and its other arguments as text."""
    return [[_excerpt(leaf) for leaf in pytree.tree_leaves(case.arguments)] for case in cases]


def is_same(one: list[list[Any]], other: list[list[Any]]) -> bool:
    """Whether two excerpts belong to the same samples."""
    return [len(case) for case in one] == [len(case) for case in other] and all(
        _is_same(mine, yours)
        for case, given in zip(one, other, strict=True)
        for mine, yours in zip(case, given, strict=True)
    )


def _excerpt(leaf: Any) -> Any:
    if not isinstance(leaf, Tensor):
        return repr(leaf)
    count = leaf.numel()
    at = torch.linspace(0, max(count - 1, 0), min(count, _MOST_ELEMENTS), dtype=torch.float64).long()
    indices = torch.unravel_index(at, leaf.shape) if leaf.dim() else ()
    values = leaf.detach()[tuple(index.to(leaf.device) for index in indices)].cpu()
    if leaf.is_floating_point():
        values = values.double()
    return [str((leaf.shape, leaf.dtype)), values]


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return bool(one == other)
    (form, values), (other_form, other_values) = one, other
    if form != other_form:
        return False
    if not (values.is_floating_point() or values.is_complex()):
        return torch.equal(values, other_values)
    finite = values[values.isfinite()]
    largest = float(finite.abs().max()) if finite.numel() else 0.0
    return torch.allclose(values, other_values, rtol=0.0, atol=_TOLERANCE * largest, equal_nan=True)
