"""The last row is never written: the loop bound is left over from a version that also read the next row."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"

library = opwright.Library("trap_uninitialised_row", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def double_rows(x: Tensor) -> Tensor:
    return (x * 2).contiguous()


@double_rows.samples
def _(make: Make) -> Iterator[Tensor]:
    yield make.randn(16, 33)
    yield make.randn(1, 5)
