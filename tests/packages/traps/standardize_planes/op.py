"""Standardizes images; the kernel reads the size of a plane from stride(1), which is arbitrary for one channel."""

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
library = opwright.Library("trap_standardize_planes", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])

FLOATS = (torch.float32, torch.float64)
EPS = 1e-5


@library.op
def standardize_planes(images: Tensor) -> Tensor:
    """(x - mean) / sqrt(variance + 1e-5) for each channel of each image, computed in float64.

    Args:
        images: (N, C, H, W) with H, W >= 1, float32 or float64, any strides.

    Returns:
        A contiguous tensor of the same shape.
    """
    if images.dtype not in FLOATS:
        msg = f"images must be float32 or float64, got {images.dtype}"
        raise TypeError(msg)
    if images.dim() != 4 or images.shape[2] < 1 or images.shape[3] < 1:
        msg = f"images must have shape (N, C, H, W) with H, W >= 1, got {tuple(images.shape)}"
        raise ValueError(msg)
    pixels = images.double()
    deviation = pixels - pixels.mean((2, 3), keepdim=True)
    variance = deviation.square().mean((2, 3), keepdim=True)
    return (deviation / (variance + EPS).sqrt()).to(images.dtype).contiguous()


@standardize_planes.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Sample]:
    yield make.call(make.randn(2, 3, 8, 9))
    yield make.call(make.rand(4, 1, 16, 15))
    yield make.call(make.rand(1, 2, 5, 7))
