"""A temporary folder for a Unix socket, whose path must be short."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# The system stores the path of a socket in about 100 bytes: 108 on Linux, 104 on macOS. The rest is for the names of
# the folder and of the socket in it.
_LONGEST_PARENT = 64
_SHORT_PARENT = Path("/tmp")  # noqa: S108  tempfile creates a folder in it that only this user can open


@contextlib.contextmanager
def socket_folder(prefix: str) -> Iterator[Path]:
    """A new folder in which a socket can be bound, removed afterwards; in /tmp if the path of TMPDIR is too long.

    Args:
        prefix: the start of its name, at most 16 characters.
    """
    parent = Path(tempfile.gettempdir())
    if len(os.fsencode(parent)) > _LONGEST_PARENT:
        parent = _SHORT_PARENT
    with tempfile.TemporaryDirectory(prefix=prefix, dir=parent) as folder:
        yield Path(folder)
