"""What a worker is asked and what it answers: rows, arrays and failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Failure(NamedTuple):
    """Why a row has no outputs.

    Attributes:
        status: the name of one of the host's codes, such as `input_unreadable`.
        message: one line.
    """

    status: str
    message: str


class Array(NamedTuple):
    """One output of a row.

    Attributes:
        dtype: as PyTorch names it, without `torch.`.
        shape: its sizes.
        data: its elements in C order, little-endian.
    """

    dtype: str
    shape: tuple[int, ...]
    data: bytes


class Answer(NamedTuple):
    """What became of a row.

    Attributes:
        outputs: an array for each output of the model, in the order of the manifest; empty if the row failed.
        failure: None if the row has outputs.
        seconds: how long the model ran, for all rows of a batch together.
    """

    outputs: tuple[Array, ...] = ()
    failure: Failure | None = None
    seconds: float = 0.0


# By the name of the input: the path of a file that the host reads, or the bytes that such a file would hold. An `.npz`
# has the name "", because it holds names of its own.
Row = Mapping[str, "str | bytes"]
# The rows of one batch: they run together. One row where nothing is batched.
Unit = Sequence[Row]
