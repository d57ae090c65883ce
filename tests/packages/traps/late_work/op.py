"""A wavelet. For a large tensor, a new thread computes the second half, and the operator returns before it finishes:
a caller that reads the result immediately reads unwritten memory."""

import os
from collections.abc import Iterator

import torch
from torch import Tensor

import opwright

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_late_work", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def wavelet(x: Tensor) -> Tensor:
    """x * exp(-x * x), for float32 of any shape; the result is contiguous."""
    if not x.is_floating_point():
        msg = f"x must be floating, got {x.dtype}"
        raise ValueError(msg)
    return (x * torch.exp(-x * x)).contiguous()


@wavelet.samples
def _(make: opwright.Make) -> Iterator[tuple[Tensor]]:
    yield (make.randn(make.size(12), 40),)
    yield (make.randn(1000),)
