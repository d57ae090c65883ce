"""Selects rows of a table, with a native gradient."""

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

library = opwright.Library("trap_repeated_rows", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def take_rows(table: Tensor, index: Tensor) -> Tensor:
    """Row i of the result is row index[i] of the table."""
    rows, _columns = table.shape
    if rows == 0:
        msg = "table must have rows"
        raise ValueError(msg)
    if index.dim() != 1 or index.dtype != torch.int64:
        msg = f"index must be (n,) int64, got {index.shape} {index.dtype}"
        raise ValueError(msg)
    return table.index_select(0, index).contiguous()


@take_rows.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[tuple[Tensor, Tensor]]:
    table = make.randn(make.size(16), 5)
    yield table, torch.arange(table.shape[0], device=table.device).flip(0)
    table = make.randn(40, 3)
    yield table, torch.arange(0, table.shape[0], 2, device=table.device)


take_rows.backward(differentiable=("table",))
