"""Sorts names, on the disk if there are many, so that memory does not grow with their number."""

from __future__ import annotations

import contextlib
import itertools
import os
import sqlite3
from typing import TYPE_CHECKING

from opwright.errors import MapError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_IN_MEMORY = 20_000


def in_order(names: Iterable[str]) -> Iterator[str]:
    """Yield names sorted by their bytes. All of them are read before the first is yielded."""
    waiting = iter(names)
    first = [os.fsencode(name) for name in itertools.islice(waiting, _IN_MEMORY)]
    if len(first) < _IN_MEMORY:
        yield from map(os.fsdecode, sorted(first))
        return
    # A database without a name is a temporary file, which SQLite sorts with a bounded cache.
    with contextlib.closing(sqlite3.connect("")) as database:
        database.execute("PRAGMA temp_store = FILE")
        database.execute("CREATE TABLE names (name BLOB)")
        all_names = itertools.chain(first, map(os.fsencode, waiting))
        try:
            database.executemany("INSERT INTO names VALUES (?)", ((name,) for name in all_names))
            first.clear()
            for (name,) in database.execute("SELECT name FROM names ORDER BY name"):
                yield os.fsdecode(name)
        except sqlite3.OperationalError as error:
            msg = f"the names of the inputs cannot be sorted: {error}. Set TMPDIR to a folder on a larger disk"
            raise MapError(msg) from error
