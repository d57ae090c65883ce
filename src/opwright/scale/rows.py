"""The data exchanged with workers: rows, arrays, answers and failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Failure(NamedTuple):
    """Why a row has no outputs.

    Attributes:
        status: the name of a host exit code, such as `input_unreadable`.
        message: the error message, one line.
    """

    status: str
    message: str


class Array(NamedTuple):
    """One output of a row.

    Attributes:
        dtype: PyTorch's name of the dtype, without `torch.`.
        shape: its sizes.
        data: its elements in C order, little-endian.
    """

    dtype: str
    shape: tuple[int, ...]
    data: bytes


class Answer(NamedTuple):
    """The result of a row.

    Attributes:
        outputs: an array for each output of the model, in the order of the manifest; empty if the row failed.
        failure: why the row failed; None if it has outputs.
        seconds: the duration of the model's run, for all rows of a batch together.
    """

    outputs: tuple[Array, ...] = ()
    failure: Failure | None = None
    seconds: float = 0.0


# Keyed by the name of the input: the path of a file that the host reads, or the bytes of one. The name of an `.npz` is
# "", because it names its own arrays.
Row = Mapping[str, "str | bytes"]
# The rows of one batch, which run together; a single row without batching.
Unit = Sequence[Row]
