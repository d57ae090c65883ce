"""The kernel is launched on the default stream, whatever PyTorch's current stream is."""

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
    "gpu_trap_default_stream", sources=["faulty.cu" if FAULTY else "cuda.cu"], include_dirs=[".."]
)


@library.op
def softsign(x: Tensor) -> Tensor:
    """x / (1 + |x|), float32, of any shape."""
    return (x / (1 + x.abs())).contiguous()


@softsign.samples
def _(make: Make) -> Iterator[tuple[Tensor]]:
    yield (make.randn(make.size(6), make.size(40)),)
    yield (make.randn(1000),)
