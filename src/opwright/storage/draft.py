"""Makes files and folders in a hidden folder, beside the place where they appear when they are complete."""

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

# Of the 255 bytes that a name may have; the rest is for what is put around it.
_LONGEST_NAME = 200
# What `tempfile` puts at the end of a name.
_RANDOM = r"[a-z0-9_]{8}"


@contextlib.contextmanager
def drafting(target: Path, verb: str) -> Iterator[Path]:
    """A path at which to make what will be `target`: of the same name, in a new hidden folder, removed at the end.

    What a killed process left beside the same target is removed; what another process is making is left alone. Rename
    the draft, or call `put`, to finish.

    Args:
        target: a file or a folder, in a folder that exists.
        verb: what is being done, for the hidden folder's name.

    Raises:
        OSError: the folder of `target` is missing, or cannot be written.
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
    """Move the complete file `draft` to `target`, which holds the old or the new content at any moment.

    Raises:
        OSError: it cannot be put there; nothing has changed then.
    """
    _check_replaceable(target)
    flush(draft)
    draft.replace(target)
    flush(target.parent)


def _check_replaceable(target: Path) -> None:
    """Check that `target` is nothing, a file or a link: root could replace /dev/null, or /dev/stdout, for all."""
    is_special = target.exists() and not (target.is_file() or target.is_dir())
    parent = target.parent.resolve()
    if is_special or (target.is_symlink() and (parent == Path("/dev") or parent.is_relative_to("/proc"))):
        raise OSError(errno.ENOTSUP, "it is a device, a pipe or a socket, not a file", str(target))


def _held(parent: Path, prefix: str) -> tuple[Path, int]:
    """A new folder, and a handle that locks it for as long as this process lives, however it ends."""
    while True:
        holder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        # Until it is locked, another process may take it for one that was left, and remove it.
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
        with contextlib.suppress(OSError):  # it is gone, not ours, or its process is still running
            lock = os.open(left, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _clear(left, target)
            finally:
                os.close(lock)


def _clear(left: Path, target: Path) -> None:
    kept = left / f"{target.name}.kept"  # a process was killed while `exchange` had no name for it but this one
    if kept.exists() and not os.path.lexists(target):
        kept.rename(target)
    if {path.name for path in left.iterdir()} <= {target.name, kept.name}:  # else it is somebody's own
        shutil.rmtree(left, ignore_errors=True)
