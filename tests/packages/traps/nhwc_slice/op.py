"""Normalizes the channels of images."""

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

library = opwright.Library("trap_nhwc_slice", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def normalize(images: Tensor, mean: Tensor, deviation: Tensor) -> Tensor:
    """(images - mean) / deviation for each channel, row-major."""
    _count, channels, _height, _width = images.shape
    if mean.shape != (channels,) or deviation.shape != (channels,):
        msg = f"mean and deviation must have {channels} elements"
        raise ValueError(msg)
    if images.dtype != mean.dtype or images.dtype != deviation.dtype or not images.is_floating_point():
        msg = "all must be of one floating-point dtype"
        raise TypeError(msg)
    return ((images - mean[:, None, None]) / deviation[:, None, None]).contiguous()


@normalize.samples
def _(make: Make) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    yield make.randn(2, 3, 8, 9), make.randn(3), make.rand(3) + 0.5
    last = make.randn(2, 4, 5, 7).contiguous(memory_format=torch.channels_last)
    yield last, make.randn(4), make.rand(4) + 0.5
