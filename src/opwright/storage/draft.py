"""Builds files and folders in a hidden folder, next to the place to which they move when they are complete."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from opwright.storage.flush import flush

if TYPE_CHECKING:
    from collections.abc import Iterator

# Of the 255 bytes of a name; the rest is for the prefix and the suffix.
_LONGEST_NAME = 200
# The suffix that `tempfile` appends to a name.
_RANDOM = r"[a-z0-9_]{8}"


@contextlib.contextmanager
def drafting(target: Path, verb: str) -> Iterator[Path]:
    """A path at which to build `target`: the same name, in a new hidden folder, which is removed on exit.

    The remains of a killed process for the same target are removed; drafts of running processes are left alone. Rename
    the draft, or call `put`, to finish.

    Args:
        target: a file or folder, in an existing folder.
        verb: the operation, for the name of the hidden folder.

    Raises:
        OSError: the folder of `target` does not exist, or cannot be written.
    """
    prefix = f".{os.fsdecode(os.fsencode(target.name)[:_LONGEST_NAME])}.{verb}-"
    _sweep(target, prefix)
    holder, lock = _held(target.parent, prefix)
    try:
        yield holder / target.name
    finally:
        shutil.rmtree(holder, ignore_errors=True)
        os.close(lock)


def put(draft: Path, target: Path) -> None:
    """Move the complete file `draft` to `target`, which has either the old or the new content at any moment.

    Raises:
        OSError: the move failed; nothing has changed.
    """
    _check_replaceable(target)
    flush(draft)
    draft.replace(target)
    flush(target.parent)


def _check_replaceable(target: Path) -> None:
    """Check that `target` is missing, a file or a link: root could replace /dev/null or /dev/stdout for everyone."""
    is_special = target.exists() and not (target.is_file() or target.is_dir())
    parent = target.parent.resolve()
    if is_special or (target.is_symlink() and (parent == Path("/dev") or parent.is_relative_to("/proc"))):
        raise OSError(errno.ENOTSUP, "it is a device, a pipe or a socket, not a file", str(target))


def _held(parent: Path, prefix: str) -> tuple[Path, int]:
    """A new folder, and a handle that locks it until this process exits, however it exits."""
    while True:
        holder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        # Until the folder is locked, another process may take it for the remains of a killed one, and remove it.
        with contextlib.suppress(FileNotFoundError):
            lock = os.open(holder, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if os.path.samestat(holder.stat(), os.fstat(lock)):
                    return holder, lock
            except BaseException:
                os.close(lock)
                raise
            os.close(lock)


def _sweep(target: Path, prefix: str) -> None:
    for left in target.parent.iterdir():
        if not re.fullmatch(re.escape(prefix) + _RANDOM, left.name):
            continue
        with contextlib.suppress(OSError):  # it is gone, belongs to another user, or is in use
            lock = os.open(left, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _clear(left, target)
            finally:
                os.close(lock)


def _clear(left: Path, target: Path) -> None:
    kept = left / f"{target.name}.kept"  # a process was killed inside `exchange`
    if kept.exists() and not os.path.lexists(target):
        kept.rename(target)
    if {path.name for path in left.iterdir()} <= {target.name, kept.name}:  # otherwise it contains a user's files
        shutil.rmtree(left, ignore_errors=True)
