"""The second call starts with the sum of the first: a static accumulator is zeroed once, not in each call."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"

library = opwright.Library("trap_state_between_calls", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def subtract_mean(x: Tensor) -> Tensor:
    return (x - x.mean()).contiguous()


@subtract_mean.samples
def _(make: Make) -> Iterator[Tensor]:
    yield make.randn(16, 33)
    yield make.randn(5)
