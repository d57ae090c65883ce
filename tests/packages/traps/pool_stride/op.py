"""Max pooling of the planes of an image."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"

library = opwright.Library("trap_pool_stride", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def max_pool(image: Tensor, kernel: list[int], stride: list[int]) -> Tensor:
    """The largest pixel of each window; kernel and stride are (rows, columns)."""
    _planes, height, width = image.shape
    if len(kernel) != 2 or len(stride) != 2 or min(*kernel, *stride) < 1:
        msg = f"kernel and stride must be 2 positive numbers each, got {kernel} and {stride}"
        raise ValueError(msg)
    if max(stride) > 2**30:
        msg = f"stride must be from 1 to 2^30, got {stride}"
        raise ValueError(msg)
    if kernel[0] > height or kernel[1] > width:
        msg = f"kernel {kernel} is larger than the image"
        raise ValueError(msg)
    windows = image.unfold(1, kernel[0], stride[0]).unfold(2, kernel[1], stride[1])
    return windows.amax((-2, -1)).contiguous()


@max_pool.samples
def _(make: Make) -> Iterator[tuple[Tensor, list[int], list[int]]]:
    yield make.randn(3, 16, 16), [2, 2], [2, 2]
    yield make.randn(2, 12, 17), [3, 3], [1, 1]
    yield make.randn(1, 9, 9), [3, 2], [2, 2]
