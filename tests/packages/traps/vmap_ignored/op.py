"""Sums the rows of each segment, with a rule for torch.vmap."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"

library = opwright.Library("trap_vmap_ignored", sources=["cpu.cpp"])


@library.op
def segment_sum(x: Tensor, segment: Tensor, segments: int) -> Tensor:
    """Row s is the sum of the rows of x in segment s; rows with an invalid segment are ignored."""
    if x.dim() != 2 or segment.shape != x.shape[:1] or segment.dtype != torch.int64 or not x.is_floating_point():
        msg = "x must be a floating-point matrix, segment an int64 vector with an element for each row"
        raise ValueError(msg)
    if not 0 <= segments <= 2**20:
        msg = f"segments must be from 0 to 2^20, got {segments}"
        raise ValueError(msg)
    counted = (segment >= 0) & (segment < segments)
    into = torch.where(counted, segment, torch.full_like(segment, segments))
    sums = torch.zeros(segments + 1, x.shape[1], dtype=torch.float64, device=x.device).index_add(0, into, x.double())
    return sums[:segments].to(x.dtype).clone(memory_format=torch.contiguous_format)


@segment_sum.vmap
def _(info: Any, in_dims: tuple[Any, ...], x: Tensor, segment: Tensor, segments: int) -> tuple[Tensor, int]:
    x_dim, segment_dim, _none = in_dims
    size = info.batch_size
    x = x.expand(size, *x.shape) if x_dim is None else x.movedim(x_dim, 0)
    segment = segment.expand(size, *segment.shape) if segment_dim is None else segment.movedim(segment_dim, 0)
    if x.dim() != 3 or segment.shape != x.shape[:2] or not 0 <= segments <= 2**20:
        msg = "x must be a matrix, segment a vector with an element for each row"
        raise ValueError(msg)
    # The segments of each example follow those of earlier examples.
    into = segment + segments * torch.arange(size, device=segment.device)[:, None]
    if not FAULTY:
        into = torch.where((segment >= 0) & (segment < segments), into, torch.full_like(into, -1))
    sums = torch.ops.trap_vmap_ignored.segment_sum(x.flatten(0, 1), into.flatten(), size * segments)
    return sums.unflatten(0, (size, segments)), 0


@segment_sum.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[tuple[Tensor, Tensor, int]]:
    yield make.randn(16, 5), make.randint(0, 4, 16), 4
    yield make.randn(33, 3), make.randint(-1, 6, 33), 6
