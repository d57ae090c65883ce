"""The padding of scratch memory is read before it is written; its values are not used."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"

library = opwright.Library("trap_sanitize_padding", sources=["faulty.cu" if FAULTY else "cuda.cu"])


@library.op
def sums_of_squares(x: Tensor) -> Tensor:
    """(x * x).sum(1), for a contiguous float32 tensor of shape (rows, columns)."""
    return (x * x).sum(1)


@sums_of_squares.samples
def _(make: Make) -> Iterator[Tensor]:
    yield make.randn(3, 40)
    yield make.randn(2, 300)
