"""Threads past the end skip the branch that contains a barrier, and wait at another one."""

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

library = opwright.Library("trap_sanitize_barrier_in_branch", sources=["faulty.cu" if FAULTY else "cuda.cu"])


@library.op
def mixed_segments(x: Tensor) -> Tensor:
    """Each 128 elements of x in reverse, plus twice the next one there, for a contiguous float32 vector."""
    if x.dim() != 1:
        msg = "x must have one dimension"
        raise ValueError(msg)
    segments = [segment.flip(0) for segment in x.split(128)]
    return torch.cat([segment + 2 * segment.roll(-1) for segment in segments])


@mixed_segments.samples
def _(make: Make) -> Iterator[Tensor]:
    yield make.randn(200)
    yield make.randn(70)
    yield make.randn(256)
