"""Running maxima. Threads scan parts of a long row, and each starts from scratch and ignores the parts before it."""

import os
from collections.abc import Iterator

import torch
from torch import Tensor

import opwright

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_scan_carry_lost", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def running_max(x: Tensor) -> Tensor:
    """The cumulative maximum of `x` (N,), float32; NaN from the first NaN on."""
    if x.dim() != 1:
        msg = f"x must have 1 dimension, got {tuple(x.shape)}"
        raise ValueError(msg)
    return torch.cummax(x, 0).values.contiguous()


@running_max.samples
def _(make: opwright.Make) -> Iterator[tuple[Tensor]]:
    yield (make.randn(make.size(500)),)
    yield (make.randn(4096),)
