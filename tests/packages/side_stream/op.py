"""Operators to time on a GPU: one runs on the current stream, and one leaves work on another stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

library = opwright.Library("side_stream", sources=["cuda.cu"])


@library.op(differentiable=())
def aside(x: Tensor) -> Tensor:
    """2 x, for float32; the kernel also spins for 200 µs on a stream that the current one does not wait for."""
    return 2 * x


@aside.sweep
def _(make: Make) -> Iterator[tuple[str, tuple[Tensor]]]:
    yield "small", (make.randn(1000),)


@library.op
def projected(x: Tensor, weights: Tensor) -> Tensor:
    """x @ weights, for matrices; the kernel is the reference."""
    return x @ weights


@projected.sweep(gradients=("x",))
def _(make: Make) -> Iterator[tuple[str, tuple[Tensor, Tensor]]]:
    yield "256", (make.randn(256, 256), make.randn(256, 256))
