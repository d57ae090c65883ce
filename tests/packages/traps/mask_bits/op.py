"""Packs a byte mask into bits, eight columns per byte."""

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

library = opwright.Library("trap_mask_bits", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op(differentiable=())
def pack_mask(mask: Tensor) -> Tensor:
    """Bit c % 8 of byte c // 8 in a row is set if column c of the uint8 mask is nonzero."""
    if mask.dtype != torch.uint8:
        msg = f"mask must be uint8, got {mask.dtype}"
        raise TypeError(msg)
    rows, columns = mask.shape
    whole = (columns + 7) // 8
    bits = torch.nn.functional.pad((mask != 0).to(torch.uint8), (0, whole * 8 - columns))
    weights = torch.tensor([1, 2, 4, 8, 16, 32, 64, 128], dtype=torch.uint8, device=mask.device)
    return (bits.reshape(rows, whole, 8) * weights).sum(-1, dtype=torch.uint8)


@pack_mask.samples
def _(make: Make) -> Iterator[Tensor]:
    yield make.randint(0, 2, 16, 64, dtype=torch.uint8)
    yield make.randint(0, 2, 5, 19, dtype=torch.uint8)
