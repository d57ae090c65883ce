"""Operators to time: a correct one, with its own sweep and floor, and a wrong one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

library = opwright.Library("timed", sources=["cpu.cpp"])


@library.op
def mixed(x: Tensor, y: Tensor) -> Tensor:
    """x * y + y, for contiguous float32 tensors of the same shape."""
    return x * y + y


@mixed.sweep(gradients=("x",))
def _(make: Make) -> Iterator[tuple[str, tuple[Tensor, Tensor]]]:
    for rows in (4, 64):
        yield f"{rows} rows", (make.randn(rows, 32), make.randn(rows, 32))


@mixed.floor("one sum")
def _(x: Tensor, y: Tensor) -> Tensor:
    return torch.add(x, y)


@library.op(differentiable=())
def shifted(x: Tensor) -> Tensor:
    """x + 1, for a contiguous float32 tensor; the kernel skips the last element."""
    return x + 1


@shifted.samples
def _(make: Make) -> Iterator[Tensor]:
    yield make.randn(40)
