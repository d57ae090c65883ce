"""The threads past the end return before a barrier that the others wait at."""

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

library = opwright.Library("trap_sanitize_early_return", sources=["faulty.cu" if FAULTY else "cuda.cu"])


@library.op
def reversed_segments(x: Tensor) -> Tensor:
    """Each 128 elements of x in reverse, and the rest too, for a contiguous float32 vector."""
    if x.dim() != 1:
        msg = "x must have one dimension"
        raise ValueError(msg)
    return torch.cat([segment.flip(0) for segment in x.split(128)])


@reversed_segments.samples
def _(make: Make) -> Iterator[Tensor]:
    yield make.randn(200)
    yield make.randn(70)
    yield make.randn(256)
