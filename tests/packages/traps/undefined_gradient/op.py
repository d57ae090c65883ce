"""An absent gradient is not handled: the author of the backward always used both results in the loss."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"

library = opwright.Library("trap_undefined_gradient", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def sine_cosine(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.sin(), x.cos()


@sine_cosine.samples
def _(make: Make) -> Iterator[Tensor]:
    yield make.randn(33)
    yield make.randn(5)


sine_cosine.backward()
