"""Detects whether files changed while a compiler or a linker read them."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from opwright.cache.file_state import FileState

# The maximum difference between the clocks of two file systems.
_SKEW_NS = 2_000_000_000


class Watch:
    """Created before a program runs; reports afterwards which of the files that it read may have changed since.

    Args:
        folder: where the program works; a file is written there to read the clock of its file system.
        before: the earlier states of files, where known; other files are judged by the time of their last change.
    """

    def __init__(self, folder: Path, before: Mapping[str, FileState]) -> None:
        self._before = dict(before)
        stamp = folder / "started"
        stamp.touch()
        self._started = stamp.stat()

    def changed(self, after: Mapping[str, FileState]) -> str | None:
        """The first of the files that may have changed, by their states `after` the program; None if none has.

        This includes a file that was replaced by an older one: its modification time is old, but its change time is
        not.
        """
        for path, state in after.items():
            if path in self._before:
                if self._before[path] != state:
                    return path
            elif self._may_be_later(path, state.ctime_ns):
                return path
        return None

    def appeared(self, unread: Iterable[str]) -> str | None:
        """The first of the files `unread` that may not have existed when the program looked; None if all existed."""
        for path in unread:
            with contextlib.suppress(OSError):
                if self._may_be_later(path, Path(path).stat().st_ctime_ns):
                    return path
        return None

    def _may_be_later(self, path: str, ctime_ns: int) -> bool:
        # Equal times count as later, because both events may fall into one tick of the file system's clock.
        return ctime_ns >= self._started.st_ctime_ns - self._skew_ns(path)

    def _skew_ns(self, path: str) -> int:
        try:
            return 0 if Path(path).stat().st_dev == self._started.st_dev else _SKEW_NS
        except OSError:
            return _SKEW_NS
