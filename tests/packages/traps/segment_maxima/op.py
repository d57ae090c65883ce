"""The largest value of each segment, as in pooling over the nodes of a graph."""

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

library = opwright.Library("trap_segment_maxima", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def segment_max(values: Tensor, segment: Tensor, segments: int) -> Tensor:
    """The largest value of each segment; 0 for an empty segment."""
    if values.dim() != 1 or segment.shape != values.shape or segment.dtype != torch.int64:
        msg = "values must be (n,), segment (n,) int64"
        raise ValueError(msg)
    if not 0 <= segments <= 2**24:
        msg = f"segments must be from 0 to 2^24, got {segments}"
        raise ValueError(msg)
    counts = torch.zeros(segments, dtype=torch.int64, device=values.device).index_add(
        0, segment, torch.ones_like(segment)
    )
    largest = values.new_full((segments,), -torch.inf).scatter_reduce(0, segment, values, "amax")
    return torch.where(counts > 0, largest, 0.0)


@segment_max.samples
def _(make: Make) -> Iterator[tuple[Tensor, Tensor, int]]:
    yield make.randn(64), make.randint(0, 4, 64), 4
    yield make.randn(100), make.randint(0, 3, 100), 5
