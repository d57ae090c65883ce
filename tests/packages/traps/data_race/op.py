"""Calls share a scratch row: it is static to save stack space, so all threads use it at the same time."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"

library = opwright.Library("trap_data_race", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def normalise_rows(x: Tensor) -> Tensor:
    return (x.abs() / x.abs().sum(1, keepdim=True)).contiguous()


@normalise_rows.samples
def _(make: Make) -> Iterator[Tensor]:
    yield make.randn(16, 33)
    yield make.randn(64, 1000)
