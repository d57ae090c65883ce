"""Pads sequences of different lengths into one matrix."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING

import torch
from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.spec import Make

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"

library = opwright.Library("trap_pad_sequences", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def pad_sequences(sequences: list[Tensor], value: float = 0.0) -> Tensor:
    """A row for each sequence; shorter ones are padded with `value` at the end."""
    if not sequences or any(sequence.dim() != 1 for sequence in sequences):
        msg = "sequences must be a list of vectors, not empty"
        raise ValueError(msg)
    if any(sequence.dtype != sequences[0].dtype for sequence in sequences):
        msg = "sequences must be of one dtype"
        raise TypeError(msg)
    if math.isfinite(value) and abs(value) > torch.finfo(torch.float32).max:
        msg = f"value must fit into float32, got {value}"
        raise ValueError(msg)
    longest = max(sequence.shape[0] for sequence in sequences)
    rows = [torch.nn.functional.pad(row, (0, longest - row.shape[0]), value=value) for row in sequences]
    return torch.stack(rows)


@pad_sequences.samples
def _(make: Make) -> Iterator[tuple[list[Tensor], float]]:
    yield [make.randn(12), make.randn(7), make.randn(3)], 0.0
    yield [make.randn(9), make.randn(9)], -1.0
