"""Counts pairs with a pool of threads, which a forked process does not have."""

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
library = opwright.Library("trap_pair_counts", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def count_pairs(tokens: Tensor, vocabulary: int) -> Tensor:
    """Count how often each token follows each other one.

    Args:
        tokens: (N) int64, from 0 to vocabulary - 1.
        vocabulary: from 1 to 1024.

    Returns:
        (vocabulary, vocabulary) int64: at [a, b], the number of times that b directly follows a.
    """
    _require(tokens.dtype == torch.int64, f"tokens must be int64, got {tokens.dtype}")
    _require(tokens.dim() == 1, f"tokens must have 1 dimension, got {tokens.dim()}")
    _require(1 <= vocabulary <= 1024, f"vocabulary must be from 1 to 1024, got {vocabulary}")
    known = torch.arange(vocabulary, device=tokens.device).index_select(0, tokens)  # raises for other tokens
    pairs = known[:-1] * vocabulary + known[1:]
    counts = torch.zeros(vocabulary * vocabulary, dtype=torch.int64, device=tokens.device)
    return counts.scatter_add(0, pairs, torch.ones_like(pairs)).view(vocabulary, vocabulary)


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise ValueError(message)


@count_pairs.samples
def _(make: Make) -> Iterator[tuple[Tensor, int]]:
    yield make.randint(0, 12, make.size(40)), 12
    yield make.randint(0, 50, 1000), 50
