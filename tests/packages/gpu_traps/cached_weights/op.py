"""The weights are copied to constant memory only if their address is new."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import torch
from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library(
    "gpu_trap_cached_weights", sources=["faulty.cu" if FAULTY else "cuda.cu"], include_dirs=[".."]
)


@library.op
def polynomial(x: Tensor, weights: Tensor) -> Tensor:
    """The sum of weights[k] * x**k, for float32 tensors: x of any shape, and up to 32 weights."""
    if weights.dim() != 1 or not 1 <= len(weights) <= 32:
        msg = f"weights must be 1 to 32 numbers, got {tuple(weights.shape)}"
        raise ValueError(msg)
    result = torch.zeros_like(x)
    for weight in weights.flip(0):
        result = result * x + weight
    return result.contiguous()


@polynomial.samples
def _(make: Make) -> Iterator[tuple[Tensor, Tensor]]:
    yield make.rand(make.size(6), 40), make.randn(5)
    yield make.rand(1000), make.randn(3)
