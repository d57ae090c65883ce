"""Reads Parquet from Python's files."""

from __future__ import annotations

from typing import IO

import pyarrow.parquet as pq


def open_parquet(file: IO[bytes]) -> pq.ParquetFile:
    """Open a Parquet file that only the calling thread reads, if `use_threads=False` is passed to its methods.

    By default, threads of Arrow read ahead. One that frees bytes of Python while the process exits aborts it.

    Args:
        file: the file, open for reading with random access.
    """
    return pq.ParquetFile(file, pre_buffer=False)
