"""Sizes are not compared: the loop uses the length of one tensor and reads past the end of the other."""

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

library = opwright.Library("trap_bad_input", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def inner(a: Tensor, b: Tensor) -> Tensor:
    return torch.dot(a, b)


@inner.samples
def _(make: Make) -> Iterator[tuple[Tensor, Tensor]]:
    yield make.randn(33), make.randn(33)
    yield make.randn(8), make.randn(8)
