"""Scales a tensor in place. For a non-contiguous tensor, the kernel scales a copy and never writes it back."""

import os
from collections.abc import Iterator

from torch import Tensor

import opwright

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_strided_view_not_written", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op(mutates=["x"])
def scale_in_place(x: Tensor, factor: float = 0.5) -> None:
    """Multiply `x`, float32, by `factor`. Elements of `x` must not share memory."""
    if not x.is_floating_point():
        msg = f"x must be floating, got {x.dtype}"
        raise ValueError(msg)
    x.mul_(factor)


@scale_in_place.samples
def _(make: opwright.Make) -> Iterator[object]:
    rows, columns = make.size(9), make.size(17)
    yield make.randn(rows, columns), 2.5
    yield make.call(make.randn(2, 3, 4))
