"""A correct operator, in a library that misbehaves outside of calls: OPWRIGHT_MISBEHAVIOR names its source."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

library = opwright.Library("misbehaving_library", sources=[f"{os.environ['OPWRIGHT_MISBEHAVIOR']}.cpp"])


@library.op(differentiable=())
def scaled(x: Tensor) -> Tensor:
    """2 x + 1, for a contiguous float32 tensor."""
    return 2 * x + 1


@scaled.samples
def _(make: Make) -> Iterator[tuple[Tensor]]:
    yield (make.randn(16, 33),)
