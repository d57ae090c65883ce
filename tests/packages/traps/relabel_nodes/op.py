"""Local numbers of nodes, from a scratch table that is not cleared when a call raises, so the next call is wrong."""

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
library = opwright.Library("trap_relabel_nodes", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])

LIMIT = 2**22


@library.op(differentiable=())
def relabel_nodes(nodes: Tensor, num_nodes: int) -> Tensor:
    """The local number of each entry's node: nodes are numbered in the order of their first occurrence.

    Args:
        nodes: (N,) int64, from 0 to num_nodes - 1, any strides.
        num_nodes: from 0 to 2^22.

    Returns:
        (N,) int64.

    Raises:
        ValueError: a node is out of range.
    """
    if nodes.dtype != torch.int64:
        msg = f"nodes must be int64, got {nodes.dtype}"
        raise TypeError(msg)
    if nodes.dim() != 1:
        msg = f"nodes must have shape (N,), got {tuple(nodes.shape)}"
        raise ValueError(msg)
    if not 0 <= num_nodes <= LIMIT:
        msg = f"num_nodes must be 0 to {LIMIT}, got {num_nodes}"
        raise ValueError(msg)
    if bool(((nodes < 0) | (nodes >= num_nodes)).any()):
        msg = "nodes must be 0 to num_nodes - 1"
        raise ValueError(msg)
    distinct, inverse = torch.unique(nodes, return_inverse=True)
    place = torch.arange(nodes.shape[0], device=nodes.device)
    first = place.new_full(distinct.shape, nodes.shape[0]).scatter_reduce(0, inverse, place, "amin")
    return first.argsort().argsort()[inverse].contiguous()


@relabel_nodes.fake
def _(nodes: Tensor, num_nodes: int) -> Tensor:
    if nodes.dtype != torch.int64 or nodes.dim() != 1 or not 0 <= num_nodes <= LIMIT:
        msg = f"nodes must be (N,) int64 and num_nodes 0 to {LIMIT}, got {nodes.dtype}, {num_nodes}"
        raise ValueError(msg)
    return nodes.new_empty((nodes.shape[0],))


@relabel_nodes.samples
def _(make: Make) -> Iterator[Sample]:
    yield make.call(make.randint(0, 20, 50), 20)
    yield make.call(make.randint(0, 1000, 33), 1000)
