"""One operator with a native kernel, and one with only a reference."""

from __future__ import annotations

from torch import Tensor

import opwright

library = opwright.Library("half_native", sources=["cpu.cpp"])


@library.op(differentiable=())
def implemented(x: Tensor) -> Tensor:
    """x, for a contiguous float32 tensor."""
    return x.clone()


@library.op(differentiable=())
def only_described(x: Tensor) -> Tensor:
    """x, for any tensor."""
    return x.clone()
