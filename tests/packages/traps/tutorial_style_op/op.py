"""Written as in tutorials: a cast pointer, a loop over numel(), no checks. A first try shows none of its 3 faults."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"

library = opwright.Library("trap_tutorial_style_op", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def multiply(a: Tensor, b: Tensor) -> Tensor:
    if a.shape != b.shape:
        msg = f"a and b must have the same shape, got {tuple(a.shape)} and {tuple(b.shape)}"
        raise ValueError(msg)
    return (a.float() * b.float()).contiguous()


@multiply.samples
def _(make: Make) -> Iterator[tuple[Tensor, Tensor]]:
    yield make.randn(16, 33), make.randn(16, 33)
    yield make.randn(5), make.randn(5)
