"""Max pooling with ceil_mode whose kernel also counts a last window that starts in the right padding."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import torch
from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright import Make, Sample

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_pool_frames", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])

FLOATS = (torch.float32, torch.float64)


@library.op
def pool_frames(x: Tensor, kernel: int, stride: int, padding: int = 0) -> Tensor:
    """The maxima of windows along the last dimension, like `max_pool1d` with ceil_mode: the last one may be cut off.

    Args:
        x: (N, C, L), not empty, float32 or float64, any strides.
        kernel: the length of a window, from 1 to L.
        stride: the distance between windows, from 1 to `kernel`.
        padding: the number of -inf added at both ends, from 0 to kernel // 2.

    Returns:
        (N, C, count), contiguous. Every window starts inside the sequence or the left padding.
    """
    if x.dtype not in FLOATS:
        msg = f"x must be float32 or float64, got {x.dtype}"
        raise TypeError(msg)
    if x.dim() != 3 or 0 in x.shape:
        msg = f"x must have shape (N, C, L) and not be empty, got {tuple(x.shape)}"
        raise ValueError(msg)
    if not 1 <= kernel <= x.shape[2]:
        msg = f"kernel must be 1 to {x.shape[2]}, got {kernel}"
        raise ValueError(msg)
    if not 1 <= stride <= kernel:
        msg = f"stride must be 1 to kernel, {kernel}, got {stride}"
        raise ValueError(msg)
    if not 0 <= padding <= kernel // 2:
        msg = f"padding must be 0 to {kernel // 2}, got {padding}"
        raise ValueError(msg)
    return torch.nn.functional.max_pool1d(x, kernel, stride, padding, ceil_mode=True).contiguous()


@pool_frames.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Sample]:
    yield make.call(make.randn(2, 4, 32), 3, 2, 1)
    yield make.call(make.randn(1, 3, 33), 2, 2)
    yield make.call(make.randn(3, 2, 50), 5, 1, 2)
