"""Finds the starts of runs of equal numbers."""

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

library = opwright.Library("trap_chunk_starts", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def run_starts(x: Tensor) -> Tensor:
    """Whether each element of a vector differs from the previous one; true for the first."""
    if x.dim() != 1 or x.dtype not in (torch.int64, torch.int32):
        msg = "x must be a vector of int64 or int32"
        raise ValueError(msg)
    first = torch.ones_like(x[:1], dtype=torch.bool)
    return torch.cat([first, x[1:] != x[:-1]]).contiguous()


@run_starts.samples
def _(make: Make) -> Iterator[Tensor]:
    yield make.randint(0, 3, 33)
    yield make.randint(0, 4, 1000)
    yield make.randint(-1, 1, 200, dtype=torch.int32)
