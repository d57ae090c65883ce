"""Writes the file of a shard as Parquet, in row groups that bound the memory in use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from opwright.scale.results.ledger import FAILED_KEY

if TYPE_CHECKING:
    from pathlib import Path

    from opwright.scale.results.columns import Columns
    from opwright.scale.rows import Answer

_GROUP_BYTES = 2**26
# The approximate memory of a row until it is written, without its arrays.
_ROW_BYTES = 512


class ShardFile:
    """The file of a shard while it is written.

    Args:
        path: the path to write to.
        columns: the columns of the table.
        first: the id of its first row.
    """

    def __init__(self, path: Path, columns: Columns, first: int) -> None:
        self._columns = columns
        self._writer = pq.ParquetWriter(path, columns.schema)
        self._next = first
        self._inputs: list[str] = []
        self._answers: list[Answer] = []
        self._bytes = 0
        self.failed = 0

    def add(self, name: str, answer: Answer) -> None:
        """Add a row."""
        self._inputs.append(name)
        self._answers.append(answer)
        self.failed += answer.failure is not None
        self._bytes += _ROW_BYTES + sum(len(array.data) for array in answer.outputs)
        if self._bytes >= _GROUP_BYTES:
            self._flush()

    def close(self) -> None:
        """Write the remaining rows, and the number of rows that failed."""
        self._flush()
        self._writer.add_key_value_metadata({FAILED_KEY: str(self.failed).encode()})
        self._writer.close()

    def abandon(self) -> None:
        """Close the file, whatever it contains."""
        self._writer.close()

    def _flush(self) -> None:
        if self._inputs:
            table = self._columns.table(self._next, self._inputs, self._answers)
            self._writer.write_table(table)
            self._next += len(self._inputs)
            self._inputs, self._answers, self._bytes = [], [], 0
