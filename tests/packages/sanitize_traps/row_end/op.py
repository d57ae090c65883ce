"""The first element after a row is read but not used; after the last row, it is out of bounds."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"

library = opwright.Library("trap_sanitize_row_end", sources=["faulty.cu" if FAULTY else "cuda.cu"])


@library.op
def differences(x: Tensor) -> Tensor:
    """x[:, 1:] - x[:, :-1], for a contiguous float32 tensor of shape (rows, columns)."""
    return x[:, 1:] - x[:, :-1]


@differences.samples
def _(make: Make) -> Iterator[Tensor]:
    yield make.randn(3, 40)
    # 2048 bytes, so that the next allocation may follow without a gap.
    yield make.randn(4, 128)
    yield make.randn(2, 300)
