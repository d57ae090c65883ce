"""Puts files on the disk itself, so that a power cut after a rename cannot leave an empty file under the final name."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def flush(path: Path) -> None:
    """Wait until the file or the folder's list of names at `path` is on the disk.

    Raises:
        OSError: it cannot be opened, or the disk fails.
    """
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def flush_tree(folder: Path) -> None:
    """The same for `folder` and everything in it.

    Raises:
        OSError: something cannot be opened, or the disk fails.
    """
    for path in [*folder.rglob("*"), folder]:
        flush(path)
