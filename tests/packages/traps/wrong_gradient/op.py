"""The second gradient is wrong: its line was copied from that of the first, and one name was not changed."""

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

library = opwright.Library("trap_wrong_gradient", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def outer(a: Tensor, b: Tensor) -> Tensor:
    return torch.outer(a, b)


@outer.samples
def _(make: Make) -> Iterator[tuple[Tensor, Tensor]]:
    yield make.randn(16), make.randn(33)
    yield make.randn(5), make.randn(5)


outer.backward()
