"""A decaying sum, as in audio filters. The kernel makes the processor flush denormals to zero and does not restore the
mode, so later results of the thread are flushed too, even in PyTorch."""

import os
from collections.abc import Iterator

import torch
from torch import Tensor

import opwright

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_denormals_flushed", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def decaying_sum(x: Tensor, rate: float = 0.9) -> Tensor:
    """y[t] = x[t] + rate * y[t - 1] along each row, with y[-1] = 0.

    Args:
        x: (rows, times), float32.
        rate: from -1 to 1.

    Returns:
        A tensor like `x`, contiguous.
    """
    if x.dim() != 2 or not -1 <= rate <= 1:
        msg = f"x must have 2 dimensions, and rate must be -1 to 1, got {tuple(x.shape)} and {rate}"
        raise ValueError(msg)
    if x.shape[1] == 0:
        return x.clone(memory_format=torch.contiguous_format)
    steps = [x[:, 0]]
    for t in range(1, x.shape[1]):
        steps.append(x[:, t] + rate * steps[-1])
    return torch.stack(steps, dim=1)


@decaying_sum.fake
def _(x: Tensor, rate: float = 0.9) -> Tensor:
    return x.new_empty(x.shape)


@decaying_sum.samples
def _(make: opwright.Make) -> Iterator[object]:
    yield make.call(make.randn(make.size(5), 40))
    yield make.randn(2, 16), -0.5
