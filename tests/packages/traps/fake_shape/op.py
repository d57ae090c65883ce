"""The fake kernel returns the wrong sizes: keepdim was added to the operator but not to its fake kernel."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"

library = opwright.Library("trap_fake_shape")


@library.op
def row_sums(x: Tensor) -> Tensor:
    _rows, _columns = x.shape  # a matrix, like the fake kernel expects
    return x.sum(1, keepdim=True, dtype=x.dtype)


@row_sums.fake
def _(x: Tensor) -> Tensor:
    rows, _columns = x.shape
    return x.new_empty(rows) if FAULTY else x.new_empty(rows, 1)


@row_sums.samples
def _(make: Make) -> Iterator[Tensor]:
    yield make.randn(16, 33)
    yield make.randn(3, 8)
