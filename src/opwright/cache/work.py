"""Folders for builds in progress, and the locks of their recipes."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from opwright.cache.locks import locks_reach

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SLOW_WAIT_S = 2.0
# How long a folder is kept if locks do not reach other machines, where its build may still be running.
_LEFT_S = 24 * 3600.0


class WorkFolders:
    """The folders below `root`/work, each with the name of its recipe."""

    def __init__(self, root: Path) -> None:
        self._left_s = 0.0 if locks_reach(root) else _LEFT_S
        self._work = root / "work"
        self._locks = root / "locks"

    @contextlib.contextmanager
    def locked(self, recipe: str, on_wait: Callable[[str], None]) -> Iterator[None]:
        """Hold the lock of `recipe`; waiting for another process is reported to `on_wait`.

        Raises:
            OSError: it cannot be acquired.
        """
        lock = self._lock(recipe)
        _acquire(lock, on_wait)
        try:
            yield
        finally:
            lock.release()

    def make(self, recipe: str) -> Path:
        """Create a folder for `recipe`, whose lock is held, and remove the folders of killed builds.

        Raises:
            OSError: it cannot be created.
        """
        for left in self._work.iterdir():
            self._clear(left, recipe)
        # A new name: a compiler that outlived its killed parent may still write to the old folder.
        return Path(tempfile.mkdtemp(prefix=f"{recipe}.", dir=self._work))

    def _clear(self, left: Path, own: str) -> None:
        recipe = left.name.partition(".")[0]
        with contextlib.suppress(OSError, Timeout):
            if time.time() - left.stat().st_mtime < self._left_s:
                return
            if recipe == own:
                shutil.rmtree(left, ignore_errors=True)
                return
            with self._lock(recipe).acquire(blocking=False):
                shutil.rmtree(left, ignore_errors=True)

    def _lock(self, recipe: str) -> FileLock:
        return FileLock(self._locks / f"{recipe}.lock")


def _acquire(lock: FileLock, on_wait: Callable[[str], None]) -> None:
    with contextlib.suppress(Timeout):
        lock.acquire(timeout=_SLOW_WAIT_S)
        return
    since = time.monotonic()
    on_wait(f"another process is building this; waiting for it (lock: {lock.lock_file})")
    lock.acquire()
    on_wait(f"waited {time.monotonic() - since + _SLOW_WAIT_S:.0f} s for the other build")
