"""Each row is one block with a thread per element: blocks of more than 1024 threads are never launched."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("gpu_trap_row_threads", sources=["faulty.cu" if FAULTY else "cuda.cu"], include_dirs=[".."])


@library.op
def scale_columns(x: Tensor, factors: Tensor) -> Tensor:
    """x * factors, for float32 tensors: x (rows, columns), factors (columns,)."""
    if x.dim() != 2 or factors.shape != x.shape[1:]:
        msg = f"x must be a matrix with a factor for each column, got {tuple(x.shape)} and {tuple(factors.shape)}"
        raise ValueError(msg)
    return (x * factors).contiguous()


@scale_columns.samples
def _(make: Make) -> Iterator[tuple[Tensor, Tensor]]:
    rows, columns = make.size(6), make.size(40)
    yield make.randn(rows, columns), make.randn(columns)
    yield make.randn(3, 64), make.randn(64)
