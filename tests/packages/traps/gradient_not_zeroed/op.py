"""The gradient is not zeroed: it is accumulated in memory from empty_like, which is often zero in quick tests."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"

library = opwright.Library("trap_gradient_not_zeroed", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def pair_sums(x: Tensor) -> Tensor:
    return x[:-1] + x[1:]


@pair_sums.samples
def _(make: Make) -> Iterator[Tensor]:
    yield make.randn(33)
    yield make.randn(64)


pair_sums.backward()
