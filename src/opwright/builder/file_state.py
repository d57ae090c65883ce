"""The state of a file that a build read or made, and whether the file still has it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any, NamedTuple

# Beyond it, a file that was touched counts as changed: PyTorch's libraries take a second to hash.
_LARGEST_HASHED = 2**24
_AT_ONCE = 2**20


class FileState(NamedTuple):
    """What identifies a file's content.

    Attributes:
        inode: its number in the file system.
        size: its size in bytes.
        mtime_ns: when it was last written, which any program can set.
        ctime_ns: when it was last changed in any way, renamed included, which no program can set.
        content: the SHA-256 of its bytes; None for a large file.
    """

    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    content: str | None


def state_of(path: str | Path, *, hash_all: bool = False) -> FileState:
    """The state of the file at `path`; `hash_all` hashes large files too.

    Raises:
        OSError: it cannot be read.
    """
    with Path(path).open("rb") as file:
        status = os.fstat(file.fileno())
        content = _digest(file) if hash_all or status.st_size <= _LARGEST_HASHED else None
    return FileState(status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, content)


def has_state(path: str | Path, state: Any) -> bool:
    """Whether the file at `path` holds what it held in `state`, a FileState or what a file of records says is one."""
    try:
        known = FileState(*state)
        status = os.stat(path)  # noqa: PTH116  called a thousand times in a cached build, and Path.stat() is three times slower
        if status.st_size != known.size:
            return False
        if (status.st_ino, status.st_mtime_ns, status.st_ctime_ns) == (known.inode, known.mtime_ns, known.ctime_ns):
            return True
        # A touched file with the same bytes is unchanged: a fresh checkout touches every file.
        return known.content is not None and state_of(path, hash_all=True).content == known.content
    except (OSError, ValueError, TypeError):
        return False


def _digest(file: Any) -> str:
    hasher = hashlib.sha256()
    while part := file.read(_AT_ONCE):
        hasher.update(part)
    return hasher.hexdigest()
