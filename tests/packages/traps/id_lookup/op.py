"""The positions of identifiers in a vocabulary; the kernel compares them as float64."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import torch
from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_id_lookup", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op(differentiable=())
def positions(ids: Tensor, vocabulary: Tensor, missing: int = -1) -> Tensor:
    """The index of each identifier in the vocabulary, or `missing` if it is not in it.

    ids and the result are int64 of any shape. vocabulary is (V) int64 in strictly ascending order.
    """
    if ids.dtype != torch.int64 or vocabulary.dtype != torch.int64:
        msg = f"ids and vocabulary must be int64, got {ids.dtype} and {vocabulary.dtype}"
        raise TypeError(msg)
    if vocabulary.dim() != 1:
        msg = f"vocabulary must have one dimension, got {tuple(vocabulary.shape)}"
        raise ValueError(msg)
    torch._assert_async((vocabulary[1:] > vocabulary[:-1]).all(), "vocabulary must be strictly ascending")
    if vocabulary.shape[0] == 0:
        return torch.full_like(ids, missing, memory_format=torch.contiguous_format)
    at = torch.searchsorted(vocabulary.contiguous(), ids.contiguous()).clamp(max=vocabulary.shape[0] - 1)
    return torch.where(vocabulary[at] == ids, at, missing).contiguous()


@positions.samples
def _(make: Make) -> Iterator[object]:
    vocabulary = torch.arange(100, 100 + 3 * make.size(40), 3)
    yield make.randint(100, 220, make.size(17), 3), vocabulary
    yield make.randint(0, 9, 12), torch.tensor([1, 2, 5, 7]), 0
