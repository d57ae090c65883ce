"""Duplicates among the positions of a sparse matrix. Row and column are packed into a 32-bit key, which overflows for
large matrices: different positions become duplicates."""

import os
from collections.abc import Iterator

import torch
from torch import Tensor

import opwright

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_sparse_key_in_32_bits", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])
INT64_MAX = 2**63 - 1


@library.op(differentiable=())
def first_duplicate(row: Tensor, column: Tensor, columns: int) -> Tensor:
    """For each position (row, column) of a matrix, the index of the first entry with the same position.

    Args:
        row: (entries,), int64, at least 0, with row * columns + column below 2^63.
        column: (entries,), int64, from 0 to columns - 1.
        columns: the number of columns of the matrix, at least 1.

    Returns:
        (entries,), int64.
    """
    if row.dim() != 1 or row.shape != column.shape or row.dtype != torch.int64 or column.dtype != torch.int64:
        msg = f"row and column must be (entries,) of int64, got {tuple(row.shape)} and {tuple(column.shape)}"
        raise ValueError(msg)
    if columns < 1:
        msg = f"columns must be at least 1, got {columns}"
        raise ValueError(msg)
    if row.numel() == 0:
        return torch.empty_like(row)
    if row.min() < 0 or column.min() < 0 or column.max() >= columns or row.max() > INT64_MAX // columns - 1:
        msg = "a position is outside the matrix, or the matrix has 2^63 elements or more"
        raise ValueError(msg)
    order = torch.argsort(row * columns + column, stable=True)
    sorted_row, sorted_column = row[order], column[order]
    starts = torch.ones_like(row, dtype=torch.bool)
    starts[1:] = (sorted_row[1:] != sorted_row[:-1]) | (sorted_column[1:] != sorted_column[:-1])
    firsts = order[starts][starts.cumsum(0) - 1]
    return torch.empty_like(row).scatter_(0, order, firsts)


@first_duplicate.fake
def _(row: Tensor, column: Tensor, columns: int) -> Tensor:
    return row.new_empty(row.shape)


@first_duplicate.samples
def _(make: opwright.Make) -> Iterator[tuple[Tensor, Tensor, int]]:
    entries = make.size(60)
    yield make.randint(0, 6, entries), make.randint(0, 8, entries), 8
    yield make.randint(0, 1000, 300), make.randint(0, 500, 300), 500
