"""A batch size is written into the fake kernel: 16 is what the author's model has, and what every sample has."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch import Tensor  # noqa: TC002  the schema is read from the annotations

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"

library = opwright.Library("trap_hard_coded_size")


@library.op
def row_sums(x: Tensor) -> Tensor:
    return x.sum(1)


@row_sums.fake
def _(x: Tensor) -> Tensor:
    return x.new_empty(16 if FAULTY else x.shape[0])


@row_sums.samples
def _(make: Make) -> Iterator[Tensor]:
    yield make.randn(16, 33)
    yield make.randn(16, 5)
