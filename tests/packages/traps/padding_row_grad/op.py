"""Looks up the embeddings of tokens, 0 for padding, with a native gradient."""

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

library = opwright.Library("trap_padding_row_grad", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def embed(table: Tensor, tokens: Tensor, padding: int | None = None) -> Tensor:
    """Row i is row tokens[i] of the table, or 0 if that is row `padding`; a negative padding counts from the end."""
    rows, _columns = table.shape
    if rows == 0 or tokens.dim() != 1 or tokens.dtype != torch.int64 or not table.is_floating_point():
        msg = "table must be floating-point and have rows, tokens must be a vector of int64"
        raise ValueError(msg)
    if padding is not None and not -rows <= padding < rows:
        msg = f"padding must be from {-rows} to {rows - 1}, got {padding}"
        raise ValueError(msg)
    found = table.index_select(0, tokens)
    if padding is None:
        return found
    return found.masked_fill((tokens == padding % rows)[:, None], 0.0).contiguous()


@embed.samples(dtypes=(torch.float64,))
def _(make: Make) -> Iterator[tuple[Tensor, Tensor, int | None]]:
    yield make.randn(16, 5), make.randint(0, 16, 12), None
    yield make.randn(9, 8), make.randint(0, 9, 33), 0


embed.backward(differentiable=("table",))
