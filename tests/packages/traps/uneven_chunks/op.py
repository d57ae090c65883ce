"""Means and variances of columns, from blocks of rows that are distributed over threads."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"

library = opwright.Library("trap_uneven_chunks", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def moments(x: Tensor) -> tuple[Tensor, Tensor]:
    """The mean and the variance (without Bessel's correction) of each column of a matrix."""
    rows, _columns = x.shape
    if rows == 0 or not x.is_floating_point():
        msg = "x must be floating-point and have rows"
        raise ValueError(msg)
    mean = x.double().mean(0)
    return mean.to(x.dtype), (x.double() - mean).square().mean(0).to(x.dtype)


@moments.samples
def _(make: Make) -> Iterator[Tensor]:
    yield make.randn(100, 7)
    yield make.randn(512, 3)
    yield make.randn(5, 16)
