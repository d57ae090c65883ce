"""The norms of a list of tensors. Empty tensors are skipped when the work is planned, so later norms move up a
place."""

import os
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

import opwright

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_norms_skip_empty", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def norms(tensors: Sequence[Tensor]) -> Tensor:
    """The Euclidean norm of each tensor, of any shape; the norm of an empty tensor is 0.

    Args:
        tensors: at least one, all float32.

    Returns:
        (len(tensors),), contiguous.
    """
    if len(tensors) == 0:
        msg = "tensors must have at least one element"
        raise ValueError(msg)
    return torch.stack([torch.linalg.vector_norm(tensor) for tensor in tensors])


@norms.samples
def _(make: opwright.Make) -> Iterator[tuple[list[Tensor]]]:
    yield ([make.randn(30, 20), make.randn(20), make.randn(3, 4, 5), make.randn(1)],)
    yield ([make.randn(64)],)
