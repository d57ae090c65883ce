"""Numbers of voxels; the kernel packs three coordinates into one int32 key, which overflows for distant voxels."""

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
library = opwright.Library("trap_voxel_ids", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op(differentiable=())
def voxel_ids(coords: Tensor) -> Tensor:
    """The number of each point's voxel, where distinct voxels are sorted by x, then y, then z.

    Args:
        coords: (N, 3) int32, the voxel of each point; any values, any strides.

    Returns:
        (N,) int64.
    """
    if coords.dtype != torch.int32:
        msg = f"coords must be int32, got {coords.dtype}"
        raise TypeError(msg)
    if coords.dim() != 2 or coords.shape[1] != 3:
        msg = f"coords must have shape (N, 3), got {tuple(coords.shape)}"
        raise ValueError(msg)
    if coords.shape[0] == 0:
        return coords.new_empty((0,), dtype=torch.int64)
    ids: Tensor = torch.unique(coords, dim=0, return_inverse=True)[1]
    return ids.contiguous()


@voxel_ids.fake
def _(coords: Tensor) -> Tensor:
    if coords.dtype != torch.int32 or coords.dim() != 2 or coords.shape[1] != 3:
        msg = f"coords must be (N, 3) int32, got {tuple(coords.shape)} {coords.dtype}"
        raise ValueError(msg)
    return coords.new_empty((coords.shape[0],), dtype=torch.int64)


@voxel_ids.samples
def _(make: Make) -> Iterator[Sample]:
    yield make.call(make.randint(0, 4, 100, 3, dtype=torch.int32))
    yield make.call(make.randint(-50, 50, 64, 3, dtype=torch.int32))
