"""x * sigmoid(x), with a native gradient."""

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

library = opwright.Library("trap_grad_layout", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def swish(x: Tensor) -> Tensor:
    """x * sigmoid(x), of any shape."""
    return torch.nn.functional.silu(x).contiguous()


@swish.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Tensor]:
    yield make.randn(16, 33)
    yield make.randn(2, 3, 5)


swish.backward()
