"""Writes a scaled matrix into another one, four columns at a time."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"

library = opwright.Library("trap_tail_store", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


def distinct(x: Tensor) -> bool:
    """Whether each element of a matrix has its own address."""
    (far, stride), (near, step) = sorted(zip(x.shape, x.stride(), strict=True), key=lambda d: -d[1])
    return x.numel() < 2 or ((near == 1 or step > 0) and (far == 1 or stride > (near - 1) * step))


@library.op(mutates=["out"])
def scale_into(out: Tensor, x: Tensor, factor: float = 1.0) -> None:
    """Writes x * factor to out."""
    if out.dim() != 2 or x.shape != out.shape or x.dtype != out.dtype or not x.is_floating_point():
        msg = "out and x must be floating-point matrices of one shape"
        raise ValueError(msg)
    if not distinct(out):
        msg = "out must not overlap itself"
        raise ValueError(msg)
    out.copy_(x * factor)


@scale_into.fake
def _(out: Tensor, x: Tensor, factor: float = 1.0) -> None:
    pass


@scale_into.samples
def _(make: Make) -> Iterator[tuple[Tensor, Tensor, float]]:
    yield make.randn(5, 16), make.randn(5, 16), 2.0
    yield make.randn(16, 32), make.randn(16, 32), -0.5
