"""A tensor with one dimension crashes the process: a noexcept helper requests a dimension that does not exist."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"

library = opwright.Library("trap_crash_rank", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def diagonal_sum(x: Tensor) -> Tensor:
    return x.trace()


@diagonal_sum.samples
def _(make: Make) -> Iterator[Tensor]:
    yield make.randn(16, 33)
    yield make.randn(5, 5)
