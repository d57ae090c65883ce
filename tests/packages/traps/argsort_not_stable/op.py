"""The order of scores from high to low. The sort is not stable: with 17 scores or more, equal scores are reordered."""

import os
from collections.abc import Iterator

import torch
from torch import Tensor

import opwright

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_argsort_not_stable", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op(differentiable=())
def by_score(scores: Tensor) -> Tensor:
    """The indices of `scores` (N,), float32, in descending order; equal scores keep their order, and NaN is first."""
    if scores.dim() != 1:
        msg = f"scores must have 1 dimension, got {tuple(scores.shape)}"
        raise ValueError(msg)
    return torch.sort(scores, descending=True, stable=True).indices.contiguous()


@by_score.samples
def _(make: opwright.Make) -> Iterator[tuple[Tensor]]:
    yield (make.randn(make.size(100)),)
    yield (make.rand(9),)
