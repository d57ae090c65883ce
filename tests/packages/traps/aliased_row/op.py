"""Subtracts a row from each row of a matrix, in place."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"

library = opwright.Library("trap_aliased_row", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


def distinct(x: Tensor) -> bool:
    """Whether each element of a matrix has its own address."""
    (far, stride), (near, step) = sorted(zip(x.shape, x.stride(), strict=True), key=lambda d: -d[1])
    return x.numel() < 2 or ((near == 1 or step > 0) and (far == 1 or stride > (near - 1) * step))


@library.op(mutates=["x"])
def subtract_row_(x: Tensor, row: Tensor) -> None:
    """Subtracts `row` from each row of x; it may be a row of x."""
    if x.dim() != 2 or row.shape != x.shape[1:]:
        msg = f"x must be a matrix, row (columns,), got {x.shape} and {row.shape}"
        raise ValueError(msg)
    if not distinct(x):
        msg = "x must not overlap itself"
        raise ValueError(msg)
    x.copy_(x - row)


@subtract_row_.fake
def _(x: Tensor, row: Tensor) -> None:
    pass


@subtract_row_.samples
def _(make: Make) -> Iterator[tuple[Tensor, Tensor]]:
    yield make.randn(16, 33), make.randn(33)
    yield make.randn(3, 8), make.randn(8)
