"""Clips rows to a norm. Without a limit nothing is clipped; a limit of zero, which should give zeros, does the same."""

import os
from collections.abc import Iterator
from typing import Optional

import torch
from torch import Tensor

import opwright

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_optional_zero_is_none", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def clip_rows(x: Tensor, limit: Optional[float] = None) -> Tensor:
    """The rows of `x`, scaled down to a Euclidean norm of `limit` if theirs is larger.

    Args:
        x: (rows, columns), float32.
        limit: at least 0; None means no limit.

    Returns:
        A tensor like `x`, contiguous.
    """
    if x.dim() != 2 or (limit is not None and not limit >= 0):
        msg = f"x must have 2 dimensions, and limit must be at least 0, got {tuple(x.shape)} and {limit}"
        raise ValueError(msg)
    if limit is None:
        return x.clone(memory_format=torch.contiguous_format)
    norm = torch.linalg.vector_norm(x, dim=1, keepdim=True)
    return torch.where(norm > limit, x * (limit / norm), x).contiguous()


@clip_rows.samples
def _(make: opwright.Make) -> Iterator[object]:
    rows, columns = make.size(7), make.size(5)
    yield make.call(make.randn(rows, columns), limit=1.5)
    yield make.call(make.randn(rows, columns))
