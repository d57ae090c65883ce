"""A wavelet. Of a large tensor a thread that is started computes the second half, and the operator returns before it
is done: who reads at once reads memory that is not written yet."""

import os
from collections.abc import Iterator

import torch
from torch import Tensor

import opwright

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_late_work", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def wavelet(x: Tensor) -> Tensor:
    """x * exp(-x * x), float32, of any shape; the result is contiguous."""
    if not x.is_floating_point():
        msg = f"x must be floating, got {x.dtype}"
        raise ValueError(msg)
    return (x * torch.exp(-x * x)).contiguous()


@wavelet.samples
def _(make: opwright.Make) -> Iterator[tuple[Tensor]]:
    yield (make.randn(make.size(12), 40),)
    yield (make.randn(1000),)
