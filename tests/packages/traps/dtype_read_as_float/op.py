"""Any dtype is read as float: the untyped pointer is cast, because the author only ever passed float32."""

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

library = opwright.Library("trap_dtype_read_as_float", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def row_sums(x: Tensor) -> Tensor:
    return x.sum(1, dtype=torch.float32)


@row_sums.samples
def _(make: Make) -> Iterator[Tensor]:
    yield make.randn(16, 33)
    yield make.randn(3, 8)
