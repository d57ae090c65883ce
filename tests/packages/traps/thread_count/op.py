"""The result depends on the number of threads: the work is split by hand, and no thread handles the remainder."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"

library = opwright.Library("trap_thread_count", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def scale(x: Tensor, factor: float) -> Tensor:
    return (x * factor).contiguous()


@scale.samples
def _(make: Make) -> Iterator[tuple[Tensor, float]]:
    yield make.randn(7, 11), 2.5
    yield make.randn(1009), -1.0
