"""The forward runs on the current stream, but the backward on the default stream."""

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
    "gpu_trap_backward_stream", sources=["faulty.cu" if FAULTY else "cuda.cu"], include_dirs=[".."]
)


@library.op
def square(x: Tensor) -> Tensor:
    """x * x, float32, of any shape."""
    return (x * x).contiguous()


square.backward()


@square.samples
def _(make: Make) -> Iterator[tuple[Tensor]]:
    yield (make.randn(make.size(6), make.size(40)),)
    yield (make.randn(1000),)
