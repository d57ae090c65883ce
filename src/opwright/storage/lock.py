"""File locks, which the system releases when their holder exits, however it exits."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_POLL_S = 0.01
# The errors of `flock` on file systems, or servers, without locks.
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EINVAL, errno.EBADF}


@contextlib.contextmanager
def locked(path: Path, *, shared: bool = False, patience_s: float | None = None) -> Iterator[bool]:
    """Hold the lock of the file at `path`, which is created if it is missing, and is not removed.

    Args:
        path: the file, in an existing folder.
        shared: whether to share the lock with other holders that share it.
        patience_s: give up after this many seconds; by default, wait indefinitely.

    Yields:
        Whether the lock is held.

    Raises:
        OSError: the file cannot be opened, or its file system has no locks.
    """
    # On NFS, an exclusive lock requires a file that is open for writing.
    access = os.O_RDONLY if shared else os.O_RDWR
    handle = os.open(path, access | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
    try:
        yield _lock(handle, fcntl.LOCK_SH if shared else fcntl.LOCK_EX, patience_s)
    finally:
        os.close(handle)


def has_no_locks(error: OSError) -> bool:
    """Whether `error`, raised by `locked`, means that the file system has no locks."""
    return error.errno in _NO_LOCKS


def _lock(handle: int, kind: int, patience_s: float | None) -> bool:
    if patience_s is None:
        fcntl.flock(handle, kind)
        return True
    until = time.monotonic() + patience_s
    while not (held := _try_lock(handle, kind)) and time.monotonic() < until:
        time.sleep(_POLL_S)
    return held


def _try_lock(handle: int, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
