"""NaN becomes 0: in `x > 0 ? x : 0`, the comparison is false for NaN, which hides that a model is broken."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"

library = opwright.Library("trap_nan_swallowed", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def relu(x: Tensor) -> Tensor:
    return x.relu().contiguous()


@relu.samples
def _(make: Make) -> Iterator[Tensor]:
    yield make.randn(16, 33)
    yield make.randn(5)
