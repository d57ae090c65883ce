"""Brightening of images. The kernel keeps the layout of its argument, including channels last, but the fake kernel
returns a row-major tensor to torch.compile."""

import math
import os
from collections.abc import Iterator

import torch
from torch import Tensor

import opwright

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_fake_channels_last", sources=["cpu.cpp"])


@library.op
def brighten(images: Tensor, gain: float = 1.5) -> Tensor:
    """images * gain, clamped to [0, 1].

    Args:
        images: (N, C, H, W), float32, any strides.
        gain: any number except NaN.

    Returns:
        A tensor like `images`, with the strides of `torch.empty_like(images)`.
    """
    if images.dim() != 4 or not images.is_floating_point() or math.isnan(gain):
        msg = f"images must have 4 dimensions and be floating, and gain be a number, got {tuple(images.shape)}, {gain}"
        raise ValueError(msg)
    return torch.empty_like(images).copy_((images * gain).clamp(0, 1))


@brighten.fake
def _(images: Tensor, gain: float = 1.5) -> Tensor:
    del gain
    return images.new_empty(images.shape) if FAULTY else torch.empty_like(images)


@brighten.samples
def _(make: opwright.Make) -> Iterator[object]:
    height, width = make.size(5), make.size(7)
    yield make.call(make.rand(2, 3, height, width))
    yield make.rand(1, 3, 4, 4), 0.5
