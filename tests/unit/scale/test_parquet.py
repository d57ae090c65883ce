"""Parquet in Python's files."""

from __future__ import annotations

import io
import threading

import pytest

from opwright.scale.parquet import open_parquet

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


class Watched(io.BytesIO):
    """A file that records the threads that read it."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.readers: set[int] = set()

    def read(self, size: int | None = -1) -> bytes:
        self.readers.add(threading.get_ident())
        return super().read(size)


def test_only_the_calling_thread_reads_the_file() -> None:
    written = io.BytesIO()
    table = pa.table({name: range(1000) for name in "abcdefgh"})
    pq.write_table(table, written, row_group_size=100)
    file = Watched(written.getvalue())
    read = open_parquet(file)
    assert pa.concat_tables([read.read_row_group(at, use_threads=False) for at in range(10)]) == table
    assert read.read_row_groups(range(10), use_threads=False) == table
    assert file.readers == {threading.get_ident()}
