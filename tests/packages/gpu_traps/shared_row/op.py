"""Each block keeps its row in shared memory: for rows of more than 48 KiB, the call raises a CUDA error."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("gpu_trap_shared_row", sources=["faulty.cu" if FAULTY else "cuda.cu"], include_dirs=[".."])


@library.op
def centered(x: Tensor) -> Tensor:
    """Each row of x (rows, columns), float32, minus its mean."""
    if x.dim() != 2:
        msg = f"x must be a matrix, got {tuple(x.shape)}"
        raise ValueError(msg)
    return (x - x.mean(1, keepdim=True)).contiguous()


@centered.samples
def _(make: Make) -> Iterator[tuple[Tensor]]:
    yield (make.randn(make.size(6), make.size(40)),)
    yield (make.randn(3, 500),)
