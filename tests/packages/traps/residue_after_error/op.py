"""The mean of the values in each bucket."""

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

library = opwright.Library("trap_residue_after_error", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def bucket_mean(values: Tensor, bucket: Tensor, buckets: int) -> Tensor:
    """The mean of the values of each bucket; 0 for an empty bucket."""
    if values.dim() != 1 or bucket.shape != values.shape or bucket.dtype != torch.int64:
        msg = "values and bucket must be vectors of one length, bucket int64"
        raise ValueError(msg)
    if not 0 <= buckets <= 2**16 or not values.is_floating_point():
        msg = f"buckets must be from 0 to 65536, got {buckets}; values floating-point"
        raise ValueError(msg)
    none = torch.zeros(buckets, dtype=torch.float64, device=values.device)
    sums = none.index_add(0, bucket, values.double())
    sizes = none.index_add(0, bucket, torch.ones_like(values, dtype=torch.float64))
    return (sums / sizes.clamp(min=1)).to(values.dtype).contiguous()


@bucket_mean.samples
def _(make: Make) -> Iterator[tuple[Tensor, Tensor, int]]:
    yield make.randn(64), make.randint(0, 9, 64), 9
    yield make.randn(33), make.randint(0, 4, 33), 6
