"""Attention of one head, with a mask of the keys that each query attends to."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import torch
from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"

library = opwright.Library("trap_masked_attention", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    """softmax(query @ key.T / sqrt(depth)) @ value over the keys in the mask; 0 for a query without keys."""
    if query.dim() != 2 or query.shape[1] == 0 or mask.dtype != torch.bool:
        msg = "query must be (queries, depth) with depth > 0, mask bool"
        raise ValueError(msg)
    if mask.shape != (query.shape[0], key.shape[0]) or value.shape[:1] != key.shape[:1] or value.dim() != 2:
        msg = "mask must be (queries, keys), value (keys, width)"
        raise ValueError(msg)
    some = mask.any(1, keepdim=True)
    scores = (query @ key.T) / query.shape[1] ** 0.5
    scores = torch.where(some, scores.masked_fill(~mask, -torch.inf), torch.zeros_like(scores))
    return (scores.softmax(1).masked_fill(~some, 0.0) @ value).contiguous()


@attend.samples
def _(make: Make) -> Iterator[tuple[Tensor, ...]]:
    for queries, keys in ((8, 8), (5, 12)):
        causal = (make.rand(queries, keys) >= 0).tril()
        yield make.randn(queries, 16), make.randn(keys, 16), make.randn(keys, 7), causal
