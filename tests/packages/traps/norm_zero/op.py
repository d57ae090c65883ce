"""The Euclidean norm of each row, with a native gradient."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import torch
from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"

library = opwright.Library("trap_norm_zero", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def row_norm(x: Tensor) -> Tensor:
    """The Euclidean norm of each row of a matrix; the gradient of a row of zeros is 0."""
    _rows, _columns = x.shape
    norm: Tensor = torch.linalg.vector_norm(x, dim=1)
    return norm


@row_norm.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Tensor]:
    yield make.randn(16, 33)
    yield make.randn(3, 8)


row_norm.backward()
