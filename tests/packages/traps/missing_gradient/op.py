"""One gradient is missing: the backward was written when only the first argument was trained."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"

library = opwright.Library("trap_missing_gradient", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def product(x: Tensor, y: Tensor) -> Tensor:
    if x.shape != y.shape:
        msg = "x and y must have the same shape"
        raise ValueError(msg)
    return x * y


@product.samples
def _(make: Make) -> Iterator[tuple[Tensor, Tensor]]:
    yield make.randn(16, 33), make.randn(16, 33)
    yield make.randn(5), make.randn(5)


product.backward()
