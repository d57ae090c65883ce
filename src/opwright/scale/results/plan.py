"""The plan of a map: all its inputs in order, in a file next to the results."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from opwright.scale.inputs.item import Item
from opwright.scale.parquet import open_parquet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path
    from typing import IO

_GROUP_ROWS = 4096
# File names as bytes, because they need not be UTF-8.
_SCHEMA = pa.schema([("input", pa.binary()), ("files", pa.string()), ("table", pa.binary()), ("row", pa.int64())])


def write_plan(items: Iterable[Item], path: Path, found: Callable[[int], None]) -> int:
    """Write the plan to a file, and return the number of inputs; `found` is called with the number so far."""
    count = 0
    waiting = iter(items)
    with pq.ParquetWriter(path, _SCHEMA) as writer:
        while group := list(itertools.islice(waiting, _GROUP_ROWS)):
            count += len(group)
            found(count)
            columns = zip(*group, strict=True)
            inputs, files, tables, rows = columns
            encoded = [None if table is None else os.fsencode(table) for table in tables]
            arrays = [[os.fsencode(name) for name in inputs], files, encoded, rows]
            writer.write_table(pa.table([pa.array(a, f.type) for a, f in zip(arrays, _SCHEMA, strict=True)], _SCHEMA))
    return count


class Plan:
    """An existing plan.

    Args:
        file: the plan, open for reading with random access.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = open_parquet(file)

    def items(self, first: int, count: int) -> list[Item]:
        """The `count` inputs that start with the id `first`."""
        group, start = divmod(first, _GROUP_ROWS)
        last = (first + count - 1) // _GROUP_ROWS
        table = self._file.read_row_groups(range(group, last + 1), use_threads=False).slice(start, count)
        return [_item(*values) for values in zip(*(column.to_pylist() for column in table.columns), strict=True)]

    def __iter__(self) -> Iterator[Item]:
        for group in range(self._file.num_row_groups):
            table = self._file.read_row_group(group, use_threads=False)
            yield from (_item(*values) for values in zip(*(c.to_pylist() for c in table.columns), strict=True))


def shard_digests(items: Iterable[Item], rows: int) -> Iterator[str]:
    """Yield the digest of each group of `rows` inputs."""
    waiting = iter(items)
    while shard := list(itertools.islice(waiting, rows)):
        yield hashlib.sha256(json.dumps(shard).encode("ascii")).hexdigest()[:16]


def _item(name: bytes, files: str | None, table: bytes | None, row: int | None) -> Item:
    return Item(os.fsdecode(name), files, None if table is None else os.fsdecode(table), row)
