"""The fake result has another layout: the kernel returns row-major memory, the reference keeps transposed strides."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"

library = opwright.Library("trap_fake_strides", sources=["cpu.cpp"])


@library.op
def transpose_scaled(x: Tensor, factor: float) -> Tensor:
    result = (x * factor).t()
    return result if FAULTY else result.contiguous()


@transpose_scaled.samples
def _(make: Make) -> Iterator[tuple[Tensor, float]]:
    yield make.randn(16, 33), 2.5
    yield make.randn(3, 8), -1.0
