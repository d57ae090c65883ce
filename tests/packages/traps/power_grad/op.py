"""Integer powers, with a native gradient."""

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

library = opwright.Library("trap_power_grad", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def power(x: Tensor, exponent: int = 2) -> Tensor:
    """x to the power of an integer from 1 to 16."""
    if not 1 <= exponent <= 16 or not x.is_floating_point():
        msg = f"exponent must be from 1 to 16, got {exponent}; x floating-point"
        raise ValueError(msg)
    return x.pow(exponent).contiguous()


@power.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[tuple[Tensor, int]]:
    yield make.randn(16, 33), 2
    yield make.randn(7), 3


power.backward()
