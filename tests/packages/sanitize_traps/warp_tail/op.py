"""The last threads of a sum, which are one warp, exchange values without a barrier."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"

library = opwright.Library("trap_sanitize_warp_tail", sources=["faulty.cu" if FAULTY else "cuda.cu"])


@library.op
def sums(x: Tensor) -> Tensor:
    """x.sum(1), for a contiguous float32 tensor of shape (rows, columns)."""
    return x.sum(1)


@sums.samples
def _(make: Make) -> Iterator[Tensor]:
    yield make.randn(3, 300)
    yield make.randn(5, 1000)
