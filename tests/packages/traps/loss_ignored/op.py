"""The negative log-likelihood loss, with weights and an ignored class."""

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

library = opwright.Library("trap_loss_ignored", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op(differentiable=["log_probs"])
def nll(
    log_probs: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean"
) -> Tensor:
    """The sum or weighted mean of -weight[target] * log_probs[target] over the rows that are not ignored."""
    rows, classes = log_probs.shape
    if classes == 0 or target.shape != (rows,) or target.dtype != torch.int64:
        msg = "log_probs must be (rows, classes) with classes > 0, target (rows,) int64"
        raise ValueError(msg)
    if weight is not None and (weight.shape != (classes,) or weight.dtype != log_probs.dtype):
        msg = "weight must be (classes,), of log_probs' dtype"
        raise ValueError(msg)
    if reduction not in ("mean", "sum"):
        msg = f"reduction must be mean or sum, got {reduction}"
        raise ValueError(msg)
    return torch.nn.functional.nll_loss(log_probs, target, weight, ignore_index=ignore_index, reduction=reduction)


@nll.samples
def _(make: Make) -> Iterator[tuple[Tensor, Tensor, Tensor | None, int, str]]:
    yield make.randn(16, 10), make.randint(0, 10, 16), None, -100, "mean"
    yield make.randn(12, 5), make.randint(0, 5, 12), make.rand(5) + 0.5, -100, "mean"
    yield make.randn(7, 5), make.randint(0, 5, 7), None, -100, "sum"
