"""The result is zeros: a stub of the right shape that was never implemented. It passes torch.library.opcheck."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"

library = opwright.Library("trap_returns_zeros", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def scale(x: Tensor, factor: float) -> Tensor:
    return (x * factor).contiguous()


@scale.samples
def _(make: Make) -> Iterator[tuple[Tensor, float]]:
    yield make.randn(16, 33), 2.5
    yield make.randn(5), -1.0
