"""Softplus, with its gradient written in PyTorch."""

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

library = opwright.Library("trap_softplus_grad")


@library.op
def softplus(x: Tensor, beta: float = 1.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta, and x itself where beta * x is above 20."""
    if not 1e-2 <= beta <= 1e2:
        msg = f"beta must be from 0.01 to 100, got {beta}"
        raise ValueError(msg)
    if x.dtype not in (torch.float32, torch.float64):
        msg = f"x must be float32 or float64, got {x.dtype}"
        raise TypeError(msg)
    return torch.nn.functional.softplus(x, beta).contiguous()


@softplus.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[tuple[Tensor, float]]:
    yield make.randn(16, 33), 1.0
    yield make.randn(7) * 3, 2.5


@softplus.backward(saves=("x", "beta"))
def softplus_backward(grad: Tensor, x: Tensor, beta: float) -> Tensor:
    if FAULTY:
        raised = torch.exp(beta * x)
        return (grad * raised / (1 + raised)).contiguous()
    scaled = beta * x.double()
    return torch.where(scaled > 20, grad, (grad * torch.sigmoid(scaled)).to(grad.dtype)).contiguous()
