"""For an empty tensor, a kernel is launched with no blocks, which CUDA rejects, and the error is not checked."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("gpu_trap_empty_launch", sources=["faulty.cu" if FAULTY else "cuda.cu"], include_dirs=[".."])


@library.op
def smooth_step(x: Tensor) -> Tensor:
    """x * x * (3 - 2 * x), float32, of any shape."""
    return (x * x * (3 - 2 * x)).contiguous()


@smooth_step.samples
def _(make: Make) -> Iterator[tuple[Tensor]]:
    yield (make.randn(make.size(6), make.size(40)),)
    yield (make.randn(1000),)
