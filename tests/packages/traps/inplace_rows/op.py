"""Scales the rows of a matrix in place."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"

library = opwright.Library("trap_inplace_rows", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


def distinct(x: Tensor) -> bool:
    """Whether each element of a matrix has its own address."""
    (far, stride), (near, step) = sorted(zip(x.shape, x.stride(), strict=True), key=lambda d: -d[1])
    return x.numel() < 2 or ((near == 1 or step > 0) and (far == 1 or stride > (near - 1) * step))


@library.op(mutates=["x"])
def scale_rows_(x: Tensor, factors: Tensor) -> None:
    """Multiplies row i of x by factors[i]."""
    if x.dim() != 2 or factors.shape != x.shape[:1]:
        msg = f"x must be a matrix, factors (rows,), got {x.shape} and {factors.shape}"
        raise ValueError(msg)
    if not distinct(x):
        msg = "x must not overlap itself"
        raise ValueError(msg)
    x.copy_(x * factors[:, None])


@scale_rows_.fake
def _(x: Tensor, factors: Tensor) -> None:
    pass


@scale_rows_.samples
def _(make: Make) -> Iterator[tuple[Tensor, Tensor]]:
    yield make.randn(16, 33), make.randn(16)
    yield make.randn(3, 8), make.randn(3)
