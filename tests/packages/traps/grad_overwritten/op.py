"""The softmax of each row, with a native gradient that needs only the result."""

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

library = opwright.Library("trap_grad_overwritten", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def row_softmax(x: Tensor) -> Tensor:
    """The softmax of each row of a matrix."""
    _rows, _columns = x.shape
    return x.softmax(1).contiguous()


@row_softmax.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Tensor]:
    yield make.randn(16, 33)
    yield make.randn(3, 8)


@row_softmax.backward(saves=("result",))
def row_softmax_backward(grad: Tensor, result: Tensor) -> Tensor:
    return (result * (grad - (grad * result).sum(1, keepdim=True))).contiguous()
