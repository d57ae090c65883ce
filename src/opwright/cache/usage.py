"""When each thing in a cache was last used, as the date of a small file that also says what the thing is.

Whatever was used within the last day stays in the cache. Dates are renewed rarely, which costs a build that is found
next to nothing, and only under a lock that whoever removes things holds alone.
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

# What was used in this time is never removed, apart from `opwright cache clear`: some process may have its path.
SPARED_S = 24 * 3600.0
# A date that is no older is not renewed.
_OFTEN_S = 3600.0


class Usage:
    """The dates and descriptions of what is in the cache at `root`."""

    def __init__(self, root: Path) -> None:
        self._folder = root / "entries"
        self._lock = root / "locks" / "keep"

    def entry(self, name: str) -> Path:
        """The file for the thing `name`."""
        return self._folder / f"{name}.json"

    def renew(self, name: str, place: Path) -> bool:
        """Note that the thing `name` at `place` is used now.

        Returns:
            Whether it is still there.
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
        except OSError:  # a cache that may only be read, or a full disk
            pass
        return place.exists()

    def describe(self, name: str, about: Mapping[str, str], work: Path) -> None:
        """Write what the thing `name` is, and that it is used now; in `keeping`, before the thing is put in place.

        Args:
            name: the thing.
            about: its `name`, and for what it was made.
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
        """Nothing is removed meanwhile.

        Raises:
            OSError: the cache cannot be written, or its file system has no locks.
        """
        self._lock.parent.mkdir(parents=True, exist_ok=True)
        with locked(self._lock, shared=True):
            yield

    @contextlib.contextmanager
    def removing(self, patience_s: float) -> Iterator[bool]:
        """Nothing is kept and no date is renewed meanwhile; yields False if that cannot be had within `patience_s`.

        Raises:
            OSError: the cache cannot be written, or its file system has no locks.
        """
        self._lock.parent.mkdir(parents=True, exist_ok=True)
        with locked(self._lock, patience_s=patience_s) as held:
            yield held
