"""One input of a map, as it was found: a file, several files, or a row of a table."""

from __future__ import annotations

from typing import NamedTuple


class Item(NamedTuple):
    """One input.

    Attributes:
        input: how the results name it.
        files: the path of each input of the model by its name, as JSON; None where `input` itself is the path.
        table: the Parquet file that it is a row of; None for files.
        row: which row of the table it is, from 0.
    """

    input: str
    files: str | None = None
    table: str | None = None
    row: int | None = None
