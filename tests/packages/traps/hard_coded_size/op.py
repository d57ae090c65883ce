"""The fake kernel hard-codes the batch size 16, which the author's model and every sample have."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"

library = opwright.Library("trap_hard_coded_size")


@library.op
def row_sums(x: Tensor) -> Tensor:
    _rows, _columns = x.shape  # a matrix, like the fake kernel expects
    return x.sum(1, dtype=x.dtype)


@row_sums.fake
def _(x: Tensor) -> Tensor:
    rows, _columns = x.shape
    return x.new_empty(16 if FAULTY else rows)


@row_sums.samples
def _(make: Make) -> Iterator[Tensor]:
    yield make.randn(16, 33)
    yield make.randn(16, 5)
