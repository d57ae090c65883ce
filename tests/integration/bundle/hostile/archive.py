"""Reads and writes archives like PyTorch, but without its checks."""

from __future__ import annotations

import zipfile
from pathlib import Path

Records = dict[str, bytes]


def read(path: Path) -> Records:
    """The records of an archive, keyed by their names inside its folder."""
    with zipfile.ZipFile(path) as archive:
        return {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}


def write(path: Path, records: Records) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in records.items():
            archive.writestr(f"model/{name}", data)
