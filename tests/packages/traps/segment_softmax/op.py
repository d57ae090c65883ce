"""The softmax of edge scores over the edges of each node."""

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

library = opwright.Library("trap_segment_softmax", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def edge_softmax(scores: Tensor, node: Tensor, nodes: int) -> Tensor:
    """exp(score) divided by the sum of exp(score) over all edges of the same node."""
    if scores.dim() != 1 or node.shape != scores.shape or node.dtype != torch.int64:
        msg = "scores and node must be vectors of one length, node int64"
        raise ValueError(msg)
    if not 0 <= nodes <= 2**20 or not scores.is_floating_point():
        msg = f"nodes must be from 0 to 2^20, got {nodes}; scores floating-point"
        raise ValueError(msg)
    low = torch.full((nodes,), -torch.inf, dtype=scores.dtype, device=scores.device)
    largest = low.scatter_reduce(0, node, scores.detach(), "amax")
    raised = (scores - largest[node]).exp()
    sums = torch.zeros_like(low, dtype=torch.float64).index_add(0, node, raised.double())
    return (raised.double() / sums[node]).to(scores.dtype).contiguous()


@edge_softmax.samples
def _(make: Make) -> Iterator[tuple[Tensor, Tensor, int]]:
    yield make.randn(64), make.randint(0, 9, 64), 9
    yield make.randn(40) * 3, make.randint(0, 5, 40), 8
