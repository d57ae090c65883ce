"""The CPU reads a number from the GPU before the launch, which a CUDA graph does not allow."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("gpu_trap_host_read", sources=["faulty.cu" if FAULTY else "cuda.cu"], include_dirs=[".."])


@library.op
def scale_by(x: Tensor, factor: Tensor) -> Tensor:
    """x * factor, for float32 tensors: x of any shape, factor with one element."""
    if factor.shape != (1,):
        msg = f"factor must have one element, got {tuple(factor.shape)}"
        raise ValueError(msg)
    return (x * factor).contiguous()


@scale_by.samples
def _(make: Make) -> Iterator[tuple[Tensor, Tensor]]:
    yield make.randn(make.size(6), make.size(40)), make.randn(1)
    yield make.randn(1000), make.randn(1)
