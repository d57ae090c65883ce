"""The upper and lower envelope of signals, which are the same tensor if the window is 1."""

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
library = opwright.Library("trap_envelope", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def envelope(x: Tensor, window: int) -> tuple[Tensor, Tensor]:
    """The maximum and minimum of x, (..., T) float32, in an odd window from 1 to 2**16 - 1 around each step.

    Windows are cut off at the ends of the signal, which has at least one step. NaN in a window gives NaN.
    """
    if x.dtype != torch.float32:
        msg = f"x must be float32, got {x.dtype}"
        raise TypeError(msg)
    if x.dim() < 1 or x.shape[-1] < 1:
        msg = f"x must have at least one step, got {tuple(x.shape)}"
        raise ValueError(msg)
    if not 1 <= window < 2**16 or window % 2 == 0:
        msg = f"window must be odd, 1 to 2**16 - 1, got {window}"
        raise ValueError(msg)
    reach = window // 2
    above = torch.nn.functional.pad(x, (reach, reach), value=float("-inf")).unfold(-1, window, 1).amax(-1)
    below = torch.nn.functional.pad(x, (reach, reach), value=float("inf")).unfold(-1, window, 1).amin(-1)
    return above.contiguous(), below.contiguous()


@envelope.samples
def _(make: Make) -> Iterator[object]:
    yield make.randn(make.size(4), make.size(33)), 5
    yield make.randn(50), 3
