"""The first batch size is kept: a static constant is computed once, and the batch size never changes in training."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"

library = opwright.Library("trap_second_batch_size", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def batch_mean(x: Tensor) -> Tensor:
    return x.mean(0)


@batch_mean.samples
def _(make: Make) -> Iterator[Tensor]:
    yield make.randn(16, 33)
    yield make.randn(16, 5)
