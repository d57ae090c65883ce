"""Counts how often each class was predicted as each other class."""

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

library = opwright.Library("trap_confusion_flat", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def confusion(predicted: Tensor, target: Tensor, classes: int) -> Tensor:
    """At row t, column p, how often p was predicted for t; pairs with an invalid class are ignored."""
    if predicted.dim() != 1 or target.shape != predicted.shape or not 1 <= classes <= 1024:
        msg = "predicted and target must be vectors of one length, classes from 1 to 1024"
        raise ValueError(msg)
    if predicted.dtype != torch.int64 or target.dtype != torch.int64:
        msg = "predicted and target must be int64"
        raise TypeError(msg)
    counted = (target >= 0) & (target < classes) & (predicted >= 0) & (predicted < classes)
    cell = torch.where(counted, target * classes + predicted, torch.zeros_like(target))
    counts = torch.zeros(classes * classes, dtype=torch.int64, device=target.device)
    return counts.index_add(0, cell, counted.to(torch.int64)).reshape(classes, classes)


@confusion.samples
def _(make: Make) -> Iterator[tuple[Tensor, Tensor, int]]:
    yield make.randint(0, 5, 64), make.randint(0, 5, 64), 5
    target = make.randint(0, 3, 40)
    target[::4] = -100
    yield make.randint(0, 3, 40), target, 3
