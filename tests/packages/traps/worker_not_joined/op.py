"""The logistic function, computed by a worker thread that is never joined: the process aborts on exit."""

import os
from collections.abc import Iterator

import torch
from torch import Tensor

import opwright

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_worker_not_joined", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def logistic(x: Tensor) -> Tensor:
    """1 / (1 + exp(-x)), for float32 of any shape; the result is contiguous."""
    if not x.is_floating_point():
        msg = f"x must be floating, got {x.dtype}"
        raise ValueError(msg)
    return torch.sigmoid(x).contiguous()


@logistic.samples
def _(make: opwright.Make) -> Iterator[tuple[Tensor]]:
    yield (make.randn(make.size(9), 30),)
    yield (make.randn(4),)
