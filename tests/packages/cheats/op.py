"""Operators whose kernels are correct while they are verified, and cheat while they are timed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

library = opwright.Library("cheats", sources=["cpu.cpp"])
ELEMENTS = 2**19  # copying this many bytes takes long enough for a floor


@library.op(differentiable=())
def honest(x: Tensor) -> Tensor:
    """2 x + 1, for a contiguous float32 tensor, like all operators here; the kernel computes it in each call."""
    return 2 * x + 1


@library.op(differentiable=())
def cached_by_pointer(x: Tensor) -> Tensor:
    """2 x + 1; the kernel caches the result by address."""
    return 2 * x + 1


@library.op(differentiable=())
def cached_by_fingerprint(x: Tensor) -> Tensor:
    """2 x + 1; the kernel caches the result by the value of the middle element."""
    return 2 * x + 1


@library.op(differentiable=())
def idle_later(x: Tensor) -> Tensor:
    """2 x + 1; after its first calls, the kernel returns memory that it did not write."""
    return 2 * x + 1


@library.op(differentiable=())
def one_call_late(x: Tensor) -> Tensor:
    """2 x + 1; after its first calls, the kernel computes the result of a call in the next call."""
    return 2 * x + 1


@library.op(differentiable=())
def in_background(x: Tensor) -> Tensor:
    """2 x + 1; after its first calls, the kernel leaves the work to a thread and returns."""
    return 2 * x + 1


@library.op(differentiable=())
def clears_its_argument(x: Tensor) -> Tensor:
    """2 x + 1; after its first calls, the kernel overwrites its argument with zeros, whose result it knows."""
    return 2 * x + 1


@library.op(differentiable=())
def raises_later(x: Tensor) -> Tensor:
    """2 x + 1; after its first calls, the kernel raises an exception."""
    return 2 * x + 1


@library.op(differentiable=())
def remembered(x: Tensor) -> Tensor:
    """2 x + 1, for int64; the kernel computes it once per size."""
    return 2 * x + 1


def _random(make: Make) -> Iterator[tuple[str, tuple[Tensor]]]:
    yield "small", (make.randn(64),)
    yield "large", (make.randn(ELEMENTS),)


for op in library.ops.values():
    op.sweep(_random)


@remembered.sweep
def _(make: Make) -> Iterator[tuple[str, tuple[Tensor]]]:
    # Without random values, all calls have the same contents, so only the time shows what the kernel does.
    yield "large", (torch.arange(ELEMENTS),)
