"""Sums the rows of a table over bags of indices."""

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

library = opwright.Library("trap_bag_numbers", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op(differentiable=())
def bag_sum(table: Tensor, index: Tensor, offsets: Tensor) -> Tensor:
    """Row b is the sum of table[index[i]] for i from offsets[b] up to the next offset."""
    if table.dim() != 2 or index.dim() != 1 or offsets.dim() != 1 or not table.is_floating_point():
        msg = "table must be a floating-point matrix, index and offsets vectors"
        raise ValueError(msg)
    if index.dtype != torch.int64 or offsets.dtype != torch.int64:
        msg = "index and offsets must be int64"
        raise TypeError(msg)
    count, bags = index.shape[0], offsets.shape[0]
    if bags == 0:
        if count > 0:
            msg = "offsets must not be empty"
            raise ValueError(msg)
    elif int(offsets[0]) != 0 or int(offsets[-1]) > count or bool((offsets[1:] < offsets[:-1]).any()):
        msg = "offsets must rise from 0 to at most the number of indices"
        raise ValueError(msg)
    bag = torch.searchsorted(offsets.contiguous(), torch.arange(count, device=index.device), right=True) - 1
    sums = torch.zeros(bags, table.shape[1], dtype=torch.float64, device=table.device)
    return sums.index_add(0, bag, table.index_select(0, index).double()).to(table.dtype).contiguous()


@bag_sum.fake
def _(table: Tensor, index: Tensor, offsets: Tensor) -> Tensor:
    return table.new_empty(offsets.shape[0], table.shape[1])


@bag_sum.samples
def _(make: Make) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    yield make.randn(16, 5), make.randint(0, 16, 12), torch.tensor([0, 3, 4, 9])
    yield make.randn(9, 8), make.randint(0, 9, 7), torch.tensor([0, 5])
