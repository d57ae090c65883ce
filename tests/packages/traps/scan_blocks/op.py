"""The running maximum of a signal, in blocks that are distributed over threads."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"

library = opwright.Library("trap_scan_blocks", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def running_max(x: Tensor) -> Tensor:
    """The cumulative maximum of a vector; NaN from the first NaN on."""
    if x.dim() != 1:
        msg = f"x must be a vector, got shape {x.shape}"
        raise ValueError(msg)
    return x.cummax(0).values.contiguous()


@running_max.samples
def _(make: Make) -> Iterator[Tensor]:
    yield make.randn(33)
    yield make.randn(1500)
    yield make.randn(2048)
