"""The library uses its own stream, which is not synchronized with the current one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library(
    "gpu_trap_scratch_stream", sources=["faulty.cu" if FAULTY else "cuda.cu"], include_dirs=[".."]
)


@library.op
def squareplus(x: Tensor) -> Tensor:
    """(x + sqrt(x * x + 1)) / 2, float32, of any shape."""
    return ((x + (x * x + 1).sqrt()) / 2).contiguous()


@squareplus.samples
def _(make: Make) -> Iterator[tuple[Tensor]]:
    yield (make.randn(make.size(6), make.size(40)),)
    yield (make.randn(1000),)
