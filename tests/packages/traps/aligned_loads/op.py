"""Products of two tensors. The kernel loads four elements from addresses that must be multiples of 16: a view with
another start, such as x[1:], crashes the process."""

import os
from collections.abc import Iterator

from torch import Tensor

import opwright

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_aligned_loads", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def multiply(a: Tensor, b: Tensor) -> Tensor:
    """a * b, for float32 tensors of the same shape; the result is contiguous."""
    if a.shape != b.shape or a.dtype != b.dtype:
        msg = f"a and b must have one shape and dtype, got {tuple(a.shape)} {a.dtype} and {tuple(b.shape)} {b.dtype}"
        raise ValueError(msg)
    return (a * b).contiguous()


@multiply.samples
def _(make: opwright.Make) -> Iterator[tuple[Tensor, Tensor]]:
    rows, columns = make.size(6), make.size(35)
    yield make.randn(rows, columns), make.randn(rows, columns)
    yield make.randn(64), make.randn(64)
