"""Rows are read in pairs of elements: with an odd number of columns, every second row is misaligned."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("gpu_trap_paired_loads", sources=["faulty.cu" if FAULTY else "cuda.cu"], include_dirs=[".."])


@library.op
def cubed(x: Tensor) -> Tensor:
    """x * x * x, for a float32 matrix."""
    if x.dim() != 2:
        msg = f"x must be a matrix, got {tuple(x.shape)}"
        raise ValueError(msg)
    return (x * x * x).contiguous()


@cubed.samples
def _(make: Make) -> Iterator[tuple[Tensor]]:
    yield (make.randn(make.size(6), make.size(40)),)
    yield (make.randn(3, 500),)
