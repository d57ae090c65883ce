"""A right operator, whose library never joins its thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

library = opwright.Library("misbehaving_unjoined_thread", sources=["cpu.cpp"])


@library.op(differentiable=())
def scaled(x: Tensor) -> Tensor:
    """2 x + 1, for a contiguous float32 tensor."""
    return 2 * x + 1


@scaled.samples
def _(make: Make) -> Iterator[tuple[Tensor]]:
    yield (make.randn(16, 33),)
