"""The maximum of each row. Elements tied for the maximum share the gradient evenly; the native gradient assigns all of
it to the first one."""

import os
from collections.abc import Iterator

from torch import Tensor

import opwright

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_amax_gradient_ties", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def row_max(x: Tensor) -> Tensor:
    """The maximum of each row of `x` (rows, columns), float32 with at least one column; NaN if a row contains NaN."""
    if x.dim() != 2 or x.shape[1] == 0 or not x.is_floating_point():
        msg = f"x must be (rows, columns), floating, with at least one column, got {tuple(x.shape)} {x.dtype}"
        raise ValueError(msg)
    return x.amax(1).contiguous()


@row_max.samples
def _(make: opwright.Make) -> Iterator[tuple[Tensor]]:
    yield (make.randn(make.size(6), 12),)
    yield (make.randn(3, 1),)


row_max.backward()
