"""The argument is modified: contiguous() is mistaken for a copy, but returns a contiguous tensor itself."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"

library = opwright.Library("trap_undeclared_write", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def normalise(x: Tensor) -> Tensor:
    return (x.abs() / x.abs().sum()).contiguous()


@normalise.samples
def _(make: Make) -> Iterator[Tensor]:
    yield make.randn(16, 33)
    yield make.randn(5)
