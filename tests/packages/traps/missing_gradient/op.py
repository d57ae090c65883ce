"""There is no gradient: written for inference, declared as not differentiable, then put into a model that trains."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"

library = opwright.Library("trap_missing_gradient")


@library.op(differentiable=() if FAULTY else ("x",))
def cube(x: Tensor) -> Tensor:
    return x**3


@cube.samples
def _(make: Make) -> Iterator[Tensor]:
    yield make.randn(16, 33)
    yield make.randn(5)
