"""Whether the file system of a cache has locks, without which several builds at once are not safe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opwright.errors import CacheError
from opwright.storage.file_system import mount_of
from opwright.storage.lock import has_no_locks, locked

if TYPE_CHECKING:
    from pathlib import Path


def locks_reach(folder: Path) -> bool:
    """Whether a lock in `folder` is seen by all that can use it, as far as the system says what it lies on."""
    mount = mount_of(folder)
    return mount is None or mount.locks_reach_other_machines


def check_locks(path: Path) -> None:
    """Check that the file at `path`, in the folder of locks of a cache, can be locked.

    Raises:
        CacheError: its file system has no locks, without which several builds at once are not safe.
        OSError: it cannot be opened.
    """
    try:
        with locked(path, shared=True):
            return
    except OSError as error:
        if not has_no_locks(error):
            raise
        mount = mount_of(path)
        kind = f" ({mount.kind}, at {mount.point})" if mount else ""
        msg = (
            f"the cache at {path.parents[1]} cannot be used: its file system{kind} has no locks ({error.strerror}), "
            "which several builds at once need. Set OPWRIGHT_CACHE to a folder on a disk of this machine"
        )
        raise CacheError(msg) from error
