"""Rows of a table. With many indices, the kernel starts two threads, and an out-of-range index throws in one of them,
which terminates the process."""

import os
from collections.abc import Iterator

import torch
from torch import Tensor

import opwright

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_error_ends_process", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def rows_of(table: Tensor, index: Tensor) -> Tensor:
    """The rows of `table` at `index`.

    Args:
        table: (rows, columns), float32.
        index: (N,), int64, from 0 to rows - 1.

    Returns:
        (N, columns), contiguous.

    Raises:
        RuntimeError: an index is out of range.
    """
    if table.dim() != 2 or index.dim() != 1 or index.dtype != torch.int64:
        msg = f"table must have 2 dimensions and index 1, of int64, got {tuple(table.shape)} and {tuple(index.shape)}"
        raise ValueError(msg)
    return torch.index_select(table, 0, index).contiguous()


@rows_of.samples
def _(make: opwright.Make) -> Iterator[tuple[Tensor, Tensor]]:
    yield make.randn(50, make.size(8)), make.randint(0, 50, make.size(30))
    yield make.randn(4, 16), make.randint(0, 4, 9)
