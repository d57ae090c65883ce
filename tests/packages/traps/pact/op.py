"""A clipped activation whose native gradient is zero for elements exactly equal to the ceiling."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import torch
from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_pact", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def pact(x: Tensor, alpha: Tensor) -> Tensor:
    """Clip x to [0, alpha]: alpha where x > alpha, else 0 where x < 0, else x.

    x is float32 of any shape, alpha float32 of shape (). Elements equal to alpha or 0 pass through, and so does their
    gradient; NaN in x stays NaN.
    """
    if x.dtype != torch.float32 or alpha.dtype != torch.float32:
        msg = "x and alpha must be float32"
        raise TypeError(msg)
    if alpha.dim() != 0:
        msg = f"alpha must have shape (), got {tuple(alpha.shape)}"
        raise ValueError(msg)
    positive = torch.where(x < 0, torch.zeros_like(x), x)
    return torch.where(x > alpha, alpha, positive).contiguous()


@pact.samples
def _(make: Make) -> Iterator[object]:
    yield make.randn(make.size(16), make.size(33)), make.rand()
    yield make.randn(2, 3, 5, 7) * 3, make.rand() + 1


pact.backward()
