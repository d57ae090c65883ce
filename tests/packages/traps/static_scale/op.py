"""The scores of attention: scaled dot products."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"

library = opwright.Library("trap_static_scale", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def scores(query: Tensor, key: Tensor) -> Tensor:
    """query @ key.T / sqrt(depth)."""
    if query.dim() != 2 or key.dim() != 2 or query.shape[1] != key.shape[1] or query.shape[1] == 0:
        msg = "query and key must be matrices with the same number of columns, at least one"
        raise ValueError(msg)
    if query.dtype != key.dtype or not query.is_floating_point():
        msg = "query and key must be of one floating-point dtype"
        raise TypeError(msg)
    return (query.double() @ key.double().T / math.sqrt(query.shape[1])).to(query.dtype).contiguous()


@scores.samples
def _(make: Make) -> Iterator[tuple[Tensor, Tensor]]:
    yield make.randn(8, 16), make.randn(9, 16)
    yield make.randn(5, 16), make.randn(33, 16)
