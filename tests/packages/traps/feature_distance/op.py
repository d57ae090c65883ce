"""Squared distances, expanded by the kernel to |a|^2 + |b|^2 - 2ab, which cancels for points far from the origin."""

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
library = opwright.Library("trap_feature_distance", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])

FLOATS = (torch.float32, torch.float64)


@library.op
def feature_distance(a: Tensor, b: Tensor) -> Tensor:
    """The squared Euclidean distance between each descriptor of one set and each one of another.

    Args:
        a: (N, D), float32 or float64, any strides.
        b: (M, D), the same dtype.

    Returns:
        (N, M), contiguous.
    """
    if a.dtype not in FLOATS or b.dtype != a.dtype:
        msg = f"a and b must both be float32 or float64, got {a.dtype} and {b.dtype}"
        raise TypeError(msg)
    if a.dim() != 2 or b.dim() != 2 or a.shape[1] != b.shape[1]:
        msg = f"a and b must have shapes (N, D) and (M, D), got {tuple(a.shape)} and {tuple(b.shape)}"
        raise ValueError(msg)
    return (a[:, None, :] - b[None, :, :]).square().sum(-1).contiguous()


@feature_distance.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Sample]:
    yield make.call(make.randn(16, 24), make.randn(33, 24))
    yield make.call(make.randn(5, 32), make.randn(1, 32))
