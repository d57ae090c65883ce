"""A rolling cache; the kernel shifts its steps before it reads the appended ones, which may be a view of the cache."""

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
library = opwright.Library("trap_roll_cache", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op(mutates=("cache",))
def roll_cache(cache: Tensor, new: Tensor) -> None:
    """Drop the S oldest steps of cache, (B, T, C) float32, and append new, (B, S, C) float32, with S of at most T.

    new may be a part of the cache; its values from before the call are appended.
    """
    if cache.dtype != torch.float32 or new.dtype != torch.float32:
        msg = "cache and new must be float32"
        raise TypeError(msg)
    if cache.dim() != 3 or new.dim() != 3 or new.shape[0] != cache.shape[0] or new.shape[2] != cache.shape[2]:
        msg = "cache must have shape (B, T, C), new (B, S, C)"
        raise ValueError(msg)
    if new.shape[1] > cache.shape[1]:
        msg = "new must not have more steps than cache"
        raise ValueError(msg)
    cache.copy_(torch.cat([cache[:, new.shape[1] :], new], 1))


@roll_cache.samples
def _(make: Make) -> Iterator[object]:
    batch = make.size(3)
    yield make.randn(batch, 16, 8), make.randn(batch, 1, 8)
    yield make.randn(1, 9, 4), make.randn(1, 5, 4)
