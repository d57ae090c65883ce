"""Max pooling whose fake kernel also counts a last window that starts after the signal."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import torch
from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_peak_pool", sources=["cpu.cpp"])


def _length(steps: int, kernel: int, stride: int, padding: int, ceil_mode: bool) -> int:
    free = steps + 2 * padding - kernel
    length = (free + stride - 1) // stride + 1 if ceil_mode else free // stride + 1
    if ceil_mode and (length - 1) * stride >= steps + padding:
        length -= 1  # a window must not start after the signal
    return length


def _check(x: Tensor, kernel: int, stride: int, padding: int) -> None:
    if x.dtype != torch.float32:
        msg = f"x must be float32, got {x.dtype}"
        raise TypeError(msg)
    if x.dim() != 3 or x.shape[2] < 1:
        msg = f"x must have shape (N, C, T) with T of at least 1, got {tuple(x.shape)}"
        raise ValueError(msg)
    if not 1 <= kernel <= 2**20 or not 1 <= stride <= 2**20:
        msg = "kernel and stride must be 1 to 2**20"
        raise ValueError(msg)
    if not 0 <= padding <= kernel // 2:
        msg = "padding must be 0 to half the kernel"
        raise ValueError(msg)
    if x.shape[2] + 2 * padding < kernel:
        msg = "the kernel is longer than the padded signal"
        raise ValueError(msg)


@library.op
def peak_pool(x: Tensor, kernel: int, stride: int, padding: int = 0, ceil_mode: bool = False) -> Tensor:
    """The maximum of each window of x, (N, C, T) float32, like `torch.nn.functional.max_pool1d`; NaN propagates.

    With ceil_mode, the last window may extend beyond the padding, but must start in the signal or the left padding.
    """
    _check(x, kernel, stride, padding)
    steps = x.shape[2]
    length = _length(steps, kernel, stride, padding, ceil_mode)
    right = torch.sym_max((length - 1) * stride + kernel - padding - steps, 0)
    padded = torch.nn.functional.pad(x, (padding, right), value=float("-inf"))
    return padded.unfold(2, kernel, stride)[:, :, :length].amax(-1).contiguous()


@peak_pool.fake
def _(x: Tensor, kernel: int, stride: int, padding: int = 0, ceil_mode: bool = False) -> Tensor:
    _check(x, kernel, stride, padding)
    if FAULTY:
        free = x.shape[2] + 2 * padding - kernel
        length = (free + (stride - 1 if ceil_mode else 0)) // stride + 1
    else:
        length = _length(x.shape[2], kernel, stride, padding, ceil_mode)
    return torch.empty((x.shape[0], x.shape[1], length), dtype=x.dtype, device=x.device)


@peak_pool.samples
def _(make: Make) -> Iterator[object]:
    yield make.randn(2, 3, 33), 3, 2, 1, False
    yield make.randn(2, 4, 20), 3, 2, 0, True
    yield make.randn(1, 2, 40), 5, 1, 2, True
