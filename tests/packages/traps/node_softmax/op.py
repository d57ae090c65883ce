"""Softmax over the edges of each node; the kernel starts the maximum at 0, so very negative scores give 0 / 0."""

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
library = opwright.Library("trap_node_softmax", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])

FLOATS = (torch.float32, torch.float64)
LIMIT = 2**20


@library.op
def node_softmax(score: Tensor, index: Tensor, num_nodes: int) -> Tensor:
    """The softmax of each column over the edges with the same index.

    Args:
        score: (E, H) with H >= 1, float32 or float64, any strides.
        index: (E,) int64, from 0 to num_nodes - 1.
        num_nodes: from 0 to 2^20.

    Returns:
        (E, H), contiguous.
    """
    if score.dtype not in FLOATS or index.dtype != torch.int64:
        msg = f"score must be float32 or float64 and index int64, got {score.dtype} and {index.dtype}"
        raise TypeError(msg)
    if score.dim() != 2 or score.shape[1] < 1 or index.shape != score.shape[:1]:
        msg = f"score and index must be (E, H) and (E,), got {tuple(score.shape)}, {tuple(index.shape)}"
        raise ValueError(msg)
    if not 0 <= num_nodes <= LIMIT:
        msg = f"num_nodes must be 0 to {LIMIT}, got {num_nodes}"
        raise ValueError(msg)
    heads = score.shape[1]
    lowest = score.new_full((num_nodes, heads), -torch.inf)
    # These raise if an index is out of range.
    top = lowest.scatter_reduce(0, index[:, None].expand(-1, heads), score.detach(), "amax")
    weight = torch.exp(score - top[index])
    total = score.new_zeros((num_nodes, heads)).index_add(0, index, weight)
    return (weight / total[index]).contiguous()


@node_softmax.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[Sample]:
    yield make.call(make.randn(40, 3), make.randint(0, 7, 40), 7)
    yield make.call(make.randn(17, 1), make.randint(0, 30, 17), 30)
