"""The last event of each user."""

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

library = opwright.Library("trap_empty_segments", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def last_event(values: Tensor, user: Tensor, users: int) -> Tensor:
    """For each user, the last of their values; 0 for a user without values."""
    if values.dim() != 1 or user.shape != values.shape or user.dtype != torch.int64:
        msg = "values and user must be vectors of one length, user int64"
        raise ValueError(msg)
    if not 0 <= users <= 2**20 or not values.is_floating_point():
        msg = f"users must be from 0 to 2^20, got {users}; values floating-point"
        raise ValueError(msg)
    # An extra element at the front, which users without values point to.
    order = torch.arange(1, values.shape[0] + 1, device=values.device)
    at = torch.zeros(users, dtype=torch.int64, device=values.device).scatter_reduce(0, user, order, "amax")
    return torch.cat([values.new_zeros(1), values])[at].contiguous()


@last_event.samples
def _(make: Make) -> Iterator[tuple[Tensor, Tensor, int]]:
    users = make.size(9)
    yield make.randn(3 * users), torch.arange(3 * users) % users, users
    yield make.randn(40), torch.arange(40) // 8, 5
