"""Sorts rows in a scratch buffer that all calls share: concurrent calls mix up their rows."""

import os
from collections.abc import Iterator

import torch
from torch import Tensor

import opwright

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_shared_scratch", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])
MOST_COLUMNS = 8192


@library.op
def sorted_rows(x: Tensor) -> Tensor:
    """The rows of `x` (rows, columns), float32 of up to 8192 columns, each sorted in ascending order with NaN last."""
    if x.dim() != 2 or x.shape[1] > MOST_COLUMNS:
        msg = f"x must have 2 dimensions and at most {MOST_COLUMNS} columns, got {tuple(x.shape)}"
        raise ValueError(msg)
    return torch.sort(x, dim=1, stable=True).values.contiguous()


@sorted_rows.samples
def _(make: opwright.Make) -> Iterator[tuple[Tensor]]:
    yield (make.randn(make.size(7), make.size(33)),)
    yield (make.randn(20, 100),)
