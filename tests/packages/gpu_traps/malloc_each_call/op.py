"""Each call allocates its scratch memory with cudaMalloc, which a CUDA graph cannot contain."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library(
    "gpu_trap_malloc_each_call", sources=["faulty.cu" if FAULTY else "cuda.cu"], include_dirs=[".."]
)


@library.op
def relative_to_largest(x: Tensor) -> Tensor:
    """Each row of x (rows, columns), float32, divided by 1 plus its largest magnitude."""
    if x.dim() != 2 or not x.shape[1]:
        msg = f"x must be a matrix with columns, got {tuple(x.shape)}"
        raise ValueError(msg)
    return (x / (1 + x.abs().amax(1, keepdim=True))).contiguous()


@relative_to_largest.samples
def _(make: Make) -> Iterator[tuple[Tensor]]:
    yield (make.randn(make.size(6), make.size(40)),)
    yield (make.randn(3, 500),)
