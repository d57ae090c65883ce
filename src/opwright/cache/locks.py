"""Checks whether the file system of a cache supports locks, which concurrent builds require."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opwright.errors import CacheError
from opwright.storage.file_system import mount_of
from opwright.storage.lock import has_no_locks, locked

if TYPE_CHECKING:
    from pathlib import Path


def locks_reach(folder: Path) -> bool:
    """Whether locks in `folder` reach every machine that can use it, as far as its file system is known."""
    mount = mount_of(folder)
    return mount is None or mount.locks_reach_other_machines


def check_locks(path: Path) -> None:
    """Check that the file at `path`, in the folder of locks of a cache, can be locked.

    Raises:
        CacheError: its file system does not support locks, which concurrent builds require.
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
            f"the cache at {path.parents[1]} cannot be used: its file system{kind} does not support locks "
            f"({error.strerror}), which concurrent builds require. Set OPWRIGHT_CACHE to a folder on a local disk"
        )
        raise CacheError(msg) from error
