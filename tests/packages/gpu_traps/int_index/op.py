"""The index of an element is an int, which overflows with 2^31 elements or more."""

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
library = opwright.Library("gpu_trap_int_index", sources=["faulty.cu" if FAULTY else "cuda.cu"], include_dirs=[".."])


@library.op
def negated(x: Tensor) -> Tensor:
    """-x, float32 or int8, of any shape."""
    return (-x).contiguous()


@negated.samples(dtypes=(torch.int8,))
def _(make: Make) -> Iterator[tuple[Tensor]]:
    yield (make.randn(make.size(6), make.size(40)),)
    yield (make.randn(1000),)
