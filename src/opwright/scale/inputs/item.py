"""One input of a map as it was found: a file, several files, or a row of a table."""

from __future__ import annotations

from typing import NamedTuple


class Item(NamedTuple):
    """One input.

    Attributes:
        input: its name in the results.
        files: the path of each input of the model, keyed by its name, as JSON; None if `input` is the path.
        table: the Parquet file that contains the row; None for files.
        row: the number of the row in the table, from 0.
    """

    input: str
    files: str | None = None
    table: str | None = None
    row: int | None = None
