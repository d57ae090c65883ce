"""The state of a file that a build read or wrote, to detect changes."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

# A larger file counts as changed if it was touched: PyTorch's libraries take a second to hash.
_LARGEST_HASHED = 2**24
_CHUNK_BYTES = 2**20


class FileState(NamedTuple):
    """What identifies a file's content.

    Attributes:
        inode: its inode number.
        size: its size in bytes.
        mtime_ns: the time of the last write, which any program can set.
        ctime_ns: the time of the last change of any kind, including renames, which no program can set.
        content: the SHA-256 of its bytes; None for a large file, or a device such as /dev/null.
    """

    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    content: str | None


def state_of(path: str | Path, *, hash_all: bool = False) -> FileState:
    """The state of the file at `path`; `hash_all` also hashes large files.

    Raises:
        OSError: it cannot be read.
    """
    # Opening a pipe would block until another process writes to it.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
        status = os.fstat(file.fileno())
        if stat.S_ISFIFO(status.st_mode):
            raise OSError(errno.EINVAL, "it is a pipe, not a file", str(path))
        is_hashed = stat.S_ISREG(status.st_mode) and (hash_all or status.st_size <= _LARGEST_HASHED)
        content = _digest(file) if is_hashed else None
    return FileState(status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, content)


def state_as(path: Path, made: FileState) -> FileState:
    """The state of the file at `path`, which has the content of `made`.

    Raises:
        OSError: it is missing.
    """
    status = path.stat()
    return FileState(status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, made.content)


def has_state(path: str | Path, state: Any) -> bool:
    """Whether the file at `path` still has the content of `state`, a FileState or an untrusted value from a record."""
    try:
        known = FileState(*state)
        status = os.stat(path)  # noqa: PTH116  called a thousand times in a cached build, and Path.stat() is three times slower
        if status.st_size != known.size:
            return False
        if (status.st_ino, status.st_mtime_ns, status.st_ctime_ns) == (known.inode, known.mtime_ns, known.ctime_ns):
            return True
        # A touched file with the same bytes is unchanged: a new checkout touches every file.
        return known.content is not None and state_of(path, hash_all=True).content == known.content
    except (OSError, ValueError, TypeError):
        return False


def holds_content(path: Path, size: int, content: str) -> bool:
    """Whether `path` is a file, not a link to one, of `size` bytes whose SHA-256 is `content`."""
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_size != size:
            return False
        return state_of(path, hash_all=True).content == content
    except OSError:
        return False


def _digest(file: Any) -> str:
    hasher = hashlib.sha256()
    while part := file.read(_CHUNK_BYTES):
        hasher.update(part)
    return hasher.hexdigest()
