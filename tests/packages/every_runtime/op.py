"""Correct operators of different kinds, which every runtime must support."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

import opwright

if TYPE_CHECKING:
    from opwright.spec import Make, Sample

library = opwright.Library("every_runtime", sources=["cpu.cpp"])


@library.op(vmap=True)
def product(x: Tensor, y: Tensor) -> Tensor:
    """x * y."""
    return (x * y).contiguous()


@product.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[tuple[Tensor, ...]]:
    yield make.randn(4, 6), make.randn(4, 6)
    yield make.randn(5, 3), make.randn(5, 3)


product.backward()


@library.op
def joined(
    parts: Sequence[Tensor], offset: Tensor | None = None, times: int = 1, mode: str = "add", factor: float = 1.0
) -> Tensor:
    """The sum of `parts`, `times` times, plus `offset` or, in mode "scale", scaled by `factor`."""
    total = torch.zeros_like(parts[0])
    for part in parts:
        total = total + part * times
    if mode == "scale":
        total = total * factor
    return (total if offset is None else total + offset).contiguous()


@joined.samples
def _(make: Make) -> Iterator[Sample]:
    yield make.call([make.randn(3, 4), make.randn(3, 4)])
    yield make.call([make.randn(6)], make.randn(6), 3, mode="scale", factor=float("inf"))


@library.op
def halves(x: Tensor) -> tuple[Tensor, Tensor]:
    """The positive and the negative part."""
    return x.clamp(min=0).contiguous(), x.clamp(max=0).contiguous()


@halves.samples
def _(make: Make) -> Iterator[Tensor]:
    yield make.randn(7, 3)


@library.op
def signs(x: Tensor, dtype: torch.dtype) -> Tensor:
    """-1, 0 or 1, as integers."""
    return x.sign().to(dtype).contiguous()


@signs.samples
def _(make: Make) -> Iterator[Sample]:
    yield make.call(make.randn(9), torch.int64)
    yield make.call(make.randn(9), torch.int32)


@library.op(mutates=("x",))
def add_(x: Tensor, number: float, *, twice: bool = False) -> None:
    """Add `number` to `x`, in place."""
    x.add_(number * 2 if twice else number)


@add_.samples
def _(make: Make) -> Iterator[Sample]:
    yield make.call(make.randn(4, 5), 0.5)
    yield make.call(make.randn(4, 5), 0.5, twice=True)


@library.op(mutates=("xs",))
def double_all_(xs: Sequence[Tensor]) -> None:
    """Double all tensors of a list, in place."""
    for x in xs:
        x.mul_(2)


@double_all_.samples
def _(make: Make) -> Iterator[Sample]:
    yield make.call([make.randn(4, 5), make.randn(3)])
    yield make.call([make.randn(6)])
