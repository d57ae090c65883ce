"""The features of neighbors in a graph; the vmap rule offsets the padding index -1 like any other index."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_neighbor_rows", sources=["cpu.cpp"])


@library.op(vmap=True, differentiable=("features",))
def gather(features: Tensor, neighbors: Tensor) -> Tensor:
    """The features of each neighbor, (E, F); zeros for -1, which means no neighbor.

    features is (N, F), float32 or float64. neighbors is (E) int64, from -1 to N - 1.
    """
    if features.dtype not in (torch.float32, torch.float64) or neighbors.dtype != torch.int64:
        msg = f"features must be float32 or float64 and neighbors int64, got {features.dtype} and {neighbors.dtype}"
        raise TypeError(msg)
    if features.dim() != 2 or neighbors.dim() != 1:
        msg = "features must have shape (N, F), neighbors (E)"
        raise ValueError(msg)
    padded = torch.cat([features.new_zeros(1, features.shape[1]), features])
    return padded.index_select(0, neighbors + 1).contiguous()


@gather.vmap
def _(info: object, in_dims: tuple[Any, ...], features: Tensor, neighbors: Tensor) -> tuple[Tensor, int]:
    batch = info.batch_size  # type: ignore[attr-defined]
    of_features, of_neighbors = in_dims
    if of_neighbors is None:
        features = features.movedim(of_features, 1)
        rows, width = features.shape[0], features.shape[2]
        found = torch.ops.trap_neighbor_rows.gather(features.reshape(rows, batch * width), neighbors)
        return found.reshape(found.shape[0], batch, width), 1
    neighbors = neighbors.movedim(of_neighbors, 0)
    count = neighbors.shape[1]
    if of_features is not None:
        features = features.movedim(of_features, 0)
        rows, width = features.shape[1], features.shape[2]
        first = rows * torch.arange(batch, device=neighbors.device)[:, None]
        inside = (neighbors >= -1) & (neighbors < rows)
        moved = torch.where(inside, neighbors + first, batch * rows)
        neighbors = moved if FAULTY else torch.where(neighbors == -1, neighbors, moved)
        features = features.reshape(batch * rows, width)
    found = torch.ops.trap_neighbor_rows.gather(features, neighbors.reshape(batch * count))
    return found.reshape(batch, count, features.shape[1]), 0


@gather.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[object]:
    yield make.randn(make.size(7) + 3, 8), make.randint(0, 3, make.size(12))
    yield make.randn(5, 3), make.randint(0, 5, 5)
