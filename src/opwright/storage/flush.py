"""Flushes files to the disk, so that a power failure after a rename cannot leave an empty file at the final name."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def flush(path: Path) -> None:
    """Wait until the file at `path`, or the list of names of a folder, is on the disk.

    Raises:
        OSError: it cannot be opened, or the disk fails.
    """
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def flush_tree(folder: Path) -> None:
    """Flush `folder` and everything in it.

    Raises:
        OSError: a file cannot be opened, or the disk fails.
    """
    for path in [*folder.rglob("*"), folder]:
        flush(path)
