"""Checks that a path is a regular file before it is opened, because opening a pipe or a device can block forever."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from opwright.errors import BundleError

if TYPE_CHECKING:
    from pathlib import Path

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def require_plain_file(path: Path, what: str, advice: str = "") -> None:
    """Check that `path` is a regular file that can be read.

    Args:
        path: the file.
        what: the expected contents, such as `"the samples"`.
        advice: a sentence with a fix.

    Raises:
        BundleError: the path is something else, empty, or unreadable.
    """
    if why := _why_not(path):
        msg = f"{what} {path} cannot be read: {why}{advice and '. '}{advice}"
        raise BundleError(msg)


def _why_not(path: Path) -> str:
    try:
        found = path.stat()
    except OSError as error:
        return error.strerror or str(error)
    except ValueError:  # a NUL character
        return "no file can have this name"
    if not stat.S_ISREG(found.st_mode):
        return f"it is {_KINDS.get(stat.S_IFMT(found.st_mode), 'not a file')}, not a file"
    if not os.access(path, os.R_OK):
        return "Permission denied"
    return "" if found.st_size else "the file is empty"
