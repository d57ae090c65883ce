"""Records when each entry of a cache was last used, as the date of a small file that also describes the entry.

Entries used within the last day stay in the cache. Dates are renewed rarely, so that a cached build costs almost
nothing, and only while holding a shared lock, which removal holds exclusively.
"""

from __future__ import annotations

import contextlib
import json
import time
from typing import TYPE_CHECKING

from opwright.storage.lock import locked

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

# Entries used within this time are only removed by `opwright cache clear`: a process may hold their paths.
SPARED_S = 24 * 3600.0
# A date is renewed only if it is older than this.
_OFTEN_S = 3600.0


class Usage:
    """The dates and descriptions of the entries in the cache at `root`."""

    def __init__(self, root: Path) -> None:
        self._folder = root / "entries"
        self._lock = root / "locks" / "keep"

    def entry(self, name: str) -> Path:
        """The description file of the entry `name`."""
        return self._folder / f"{name}.json"

    def renew(self, name: str, place: Path) -> bool:
        """Record that the entry `name` at `place` is used now.

        Returns:
            Whether it still exists.
        """
        entry = self.entry(name)
        with contextlib.suppress(OSError):
            if 0 <= time.time() - entry.stat().st_mtime < _OFTEN_S:
                return True
        try:
            with self.keeping():
                if place.exists():
                    entry.parent.mkdir(parents=True, exist_ok=True)
                    entry.touch()
        except OSError:  # a read-only cache, or a full disk
            pass
        return place.exists()

    def describe(self, name: str, about: Mapping[str, str], work: Path) -> None:
        """Write a description of the entry `name`, dated now; call it in `keeping`, before adding the entry.

        Args:
            name: the entry.
            about: its `name`, and what it was built from.
            work: a folder for the file until it is complete.

        Raises:
            OSError: it cannot be written.
        """
        made, entry = work / "entry.json", self.entry(name)
        made.write_text(json.dumps(dict(about)))
        entry.parent.mkdir(parents=True, exist_ok=True)
        made.replace(entry)

    @contextlib.contextmanager
    def keeping(self) -> Iterator[None]:
        """Prevent removal of entries in this context.

        Raises:
            OSError: the cache cannot be written, or its file system does not support locks.
        """
        self._lock.parent.mkdir(parents=True, exist_ok=True)
        with locked(self._lock, shared=True):
            yield

    @contextlib.contextmanager
    def removing(self, patience_s: float) -> Iterator[bool]:
        """Prevent additions and renewals of dates in this context; yields False after `patience_s` without the lock.

        Raises:
            OSError: the cache cannot be written, or its file system does not support locks.
        """
        self._lock.parent.mkdir(parents=True, exist_ok=True)
        with locked(self._lock, patience_s=patience_s) as held:
            yield held
