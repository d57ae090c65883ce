"""Detects whether an error was caused by a full disk, in any of the forms in which it is reported."""

from __future__ import annotations

import errno
import os
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_CODES = (errno.ENOSPC, errno.EDQUOT)
# A file system with less free space than this counts as full, because the failed write may have needed a little more.
_LEAST_BYTES = 2**16


def full_disk(error: BaseException, folders: Iterable[Path]) -> str | None:
    """The system's message if `error` was caused by a full disk; None otherwise.

    Args:
        error: the error, raised by Python, or by a program or library whose message contains the cause.
        folders: the folders that were being written to.
    """
    for one in _chain(error):
        if isinstance(one, OSError) and one.errno in _CODES:
            return f"{one.strerror} ({one.filename})" if one.filename else one.strerror
        text = f"{one} {getattr(one, 'output', '')}"
        for words in map(os.strerror, _CODES):
            if words in text:
                return words
    for folder in folders:
        if folder.is_dir() and shutil.disk_usage(folder).free < _LEAST_BYTES:
            return f"{os.strerror(errno.ENOSPC)} ({folder})"
    return None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The exception, and those that it was raised from."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
