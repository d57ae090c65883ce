"""Sine and cosine. The native gradient returns zeros when the sine is not used, although the cosine is."""

import os
from collections.abc import Iterator

import torch
from torch import Tensor

import opwright

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_unused_result_gradient", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def sin_cos(x: Tensor) -> tuple[Tensor, Tensor]:
    """The sine and cosine of `x`, float32 of any shape; the results are contiguous."""
    if not x.is_floating_point():
        msg = f"x must be floating, got {x.dtype}"
        raise ValueError(msg)
    return torch.sin(x).contiguous(), torch.cos(x).contiguous()


@sin_cos.samples
def _(make: opwright.Make) -> Iterator[tuple[Tensor]]:
    yield (make.randn(make.size(6), 20),)
    yield (make.randn(5),)


sin_cos.backward()
