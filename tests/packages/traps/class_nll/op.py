"""A class loss whose kernel divides a weighted mean by the number of rows instead of the sum of the weights."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Optional

import torch
from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_class_nll", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def class_nll(log_probs: Tensor, target: Tensor, weight: Optional[Tensor] = None, reduction: str = "mean") -> Tensor:
    """The loss -log_probs[n, target[n]], times weight[target[n]] if a weight is given.

    log_probs is (N, C) float32, target (N) int64 of 0 to C - 1, weight (C) float32. reduction is "none", "sum" or
    "mean"; a mean with weights is divided by the sum of the targets' weights. The computation is in float64; the mean
    of no rows is NaN.
    """
    if log_probs.dtype != torch.float32 or target.dtype != torch.int64:
        msg = "log_probs must be float32 and target int64"
        raise TypeError(msg)
    if log_probs.dim() != 2 or target.dim() != 1 or target.shape[0] != log_probs.shape[0]:
        msg = "log_probs must have shape (N, C), target (N)"
        raise ValueError(msg)
    if weight is not None and weight.dtype != torch.float32:
        msg = "weight must be float32"
        raise TypeError(msg)
    if weight is not None and (weight.dim() != 1 or weight.shape[0] != log_probs.shape[1]):
        msg = "weight must have shape (C)"
        raise ValueError(msg)
    if reduction not in ("none", "sum", "mean"):
        msg = f"reduction must be 'none', 'sum' or 'mean', got {reduction!r}"
        raise ValueError(msg)
    loss = -log_probs.double().gather(1, target[:, None])[:, 0]
    total: Tensor | int = target.shape[0]
    if weight is not None:
        weights = weight.double().gather(0, target)
        loss = loss * weights
        total = weights.sum()
    if reduction == "none":
        result = loss
    elif reduction == "sum":
        result = loss.sum()
    else:
        result = loss.sum() / total
    return result.to(torch.float32).contiguous()


@class_nll.samples
def _(make: Make) -> Iterator[object]:
    rows = make.size(17)
    yield make.randn(rows, 10).log_softmax(1), make.randint(0, 10, rows)
    yield make.randn(rows, 5).log_softmax(1), make.randint(0, 5, rows), make.rand(5), "sum"
    yield make.randn(8, 3).log_softmax(1), make.randint(0, 3, 8), make.rand(3), "none"
