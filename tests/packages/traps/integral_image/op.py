"""The summed-area table of an integer image."""

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

library = opwright.Library("trap_integral_image", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def integral_image(image: Tensor) -> Tensor:
    """The sum of the pixels above and to the left of each pixel, including itself, in int64."""
    if image.dim() != 2 or image.dtype not in (torch.int64, torch.int32, torch.uint8):
        msg = f"image must be a matrix of int64, int32 or uint8, got {image.shape} of {image.dtype}"
        raise ValueError(msg)
    return image.cumsum(0).cumsum(1).contiguous()


@integral_image.samples
def _(make: Make) -> Iterator[Tensor]:
    yield make.randint(0, 256, 16, 33, dtype=torch.uint8)
    yield make.randint(-1000, 1000, 7, 12)
    yield make.randint(0, 4096, 5, 9, dtype=torch.int32)
