"""The tokens of a feature pyramid, whose kernel returns the dtype of the first level instead of the promoted one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_flatten_levels", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def flatten_levels(features: Sequence[Tensor]) -> Tensor:
    """The pixels of feature maps, each (N, C, H, W), concatenated to (N, the sum of H W, C).

    Maps are float32 or float64; the result is float64 if any map is. There is at least one map; N and C are equal.
    """
    if len(features) < 1:
        msg = "features must have at least one feature map"
        raise ValueError(msg)
    for feature in features:
        if feature.dtype not in (torch.float32, torch.float64):
            msg = f"features must be float32 or float64, got {feature.dtype}"
            raise TypeError(msg)
        if feature.dim() != 4 or feature.shape[:2] != features[0].shape[:2]:
            msg = "features must have shape (N, C, H, W), with the same N and C"
            raise ValueError(msg)
    dtype = torch.float64 if any(feature.dtype == torch.float64 for feature in features) else torch.float32
    return torch.cat([feature.flatten(2).transpose(1, 2).to(dtype) for feature in features], 1).contiguous()


@flatten_levels.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[object]:
    batch, channels = make.size(2), make.size(5)
    yield ([make.randn(batch, channels, 8, 6), make.randn(batch, channels, 4, 3), make.randn(batch, channels, 2, 2)],)
    yield ([make.randn(1, 3, 5, 7)],)
