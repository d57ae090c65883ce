"""float64 is summed in float: the dtype became a template parameter, but the accumulator did not."""

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

library = opwright.Library("trap_lossy_accumulator", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def row_sums(x: Tensor) -> Tensor:
    return x.sum(1)


@row_sums.samples(dtypes=(torch.float32, torch.float64))
def _(make: Make) -> Iterator[Tensor]:
    yield make.randn(16, 33)
    yield make.randn(3, 8)
