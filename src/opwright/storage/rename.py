"""Linux renames beyond the portable ones: without replacing anything, and swapping two names."""

from __future__ import annotations

import ctypes
import errno
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_HERE = -100  # AT_FDCWD
_NO_REPLACE, _EXCHANGE = 1, 2
# The errors of file systems that do not support these renames: NFS, and some FUSE file systems.
_LACKS = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP}


def rename_to_free(source: Path, target: Path) -> None:
    """Rename `source` to `target`, which must not exist.

    Raises:
        FileExistsError: `target` exists.
        OSError: the rename failed.
    """
    try:
        _rename(source, target, _NO_REPLACE)
    except OSError as error:
        if error.errno not in _LACKS:
            raise
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from error
        source.rename(target)


def exchange(one: Path, other: Path) -> None:
    """Swap two files or folders atomically: both names exist at any moment.

    If the file system does not support this, `other` temporarily moves to `one` with the suffix `.kept`.

    Raises:
        OSError: the rename failed; nothing has changed.
    """
    try:
        _rename(one, other, _EXCHANGE)
    except OSError as error:
        if error.errno not in _LACKS:
            raise
        kept = one.with_name(f"{one.name}.kept")
        other.rename(kept)
        try:
            one.rename(other)
        except BaseException:
            kept.rename(other)
            raise
        kept.rename(one)


def _rename(source: Path, target: Path, flag: int) -> None:
    rename = ctypes.CDLL(None, use_errno=True).renameat2
    if rename(_HERE, os.fsencode(source), _HERE, os.fsencode(target), flag) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), str(target))
