"""The rows are the second dimension of the grid, which is limited to 65535."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("gpu_trap_grid_rows", sources=["faulty.cu" if FAULTY else "cuda.cu"], include_dirs=[".."])


@library.op
def add_to_rows(x: Tensor, bias: Tensor) -> Tensor:
    """x + bias[:, None], for float32 tensors: x (rows, columns), bias (rows,)."""
    if x.dim() != 2 or bias.shape != x.shape[:1]:
        msg = f"x must be a matrix with a bias for each row, got {tuple(x.shape)} and {tuple(bias.shape)}"
        raise ValueError(msg)
    return (x + bias[:, None]).contiguous()


@add_to_rows.samples
def _(make: Make) -> Iterator[tuple[Tensor, Tensor]]:
    rows, columns = make.size(6), make.size(40)
    yield make.randn(rows, columns), make.randn(rows)
    yield make.randn(64, 3), make.randn(64)
