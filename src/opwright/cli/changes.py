"""Detects changed files of an operator library."""

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING

from opwright.cache.file_state import FileState, has_state, state_of
from opwright.storage.file_system import mount_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence
    from pathlib import Path

# Files in the library's folder that are watched even if they were not read: op.py may search for sources, and a missing
# header may appear.
_SUFFIXES = (".py", ".c", ".cc", ".cpp", ".cxx", ".c++", ".cu", ".cuh", ".h", ".hh", ".hpp", ".hxx", ".inc", ".inl")
_ASIDE = frozenset({"__pycache__", "build", "dist", "node_modules"})
# Changes less than this time apart belong to one save; a checkout takes longer.
_QUIET_MS = 80
_LONGEST_SAVE_MS = 1000
_TICK_MS = 150
_POLL_S = 0.3
# An environment variable of watchfiles, for file systems that report no changes and are not detected as such.
POLLING = "WATCHFILES_FORCE_POLLING"


class Changes:
    """The files of a library, and those that have changed.

    Compares content: a file that was touched, or replaced by an identical one, has not changed.

    Args:
        root: the library's folder. Sources in it are watched even if they were not read.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._read: set[Path] = set()
        self._states: dict[Path, FileState | None] = {}
        self._folders: dict[Path, int] = {}
        self._events: Generator[object, None, None] | None = None
        # Polls here, because watchfiles compares times in whole seconds.
        self._polls = bool(os.environ.get(POLLING))
        self.look()

    @property
    def count(self) -> int:
        """The number of files."""
        return sum(state is not None for state in self._states.values())

    def include(self, read: Sequence[Path], since_ns: int) -> list[Path]:
        """Watch the files of `read` too.

        Returns:
            The files that have changed since the last look. Files that were not watched before count if they changed
            since `since_ns` nanoseconds.
        """
        new = set(read) - set(self._states)
        self._read.update(read)
        self._states.update({path: _state(path) for path in new})
        late = [path for path in new if (state := self._states[path]) is not None and state.ctime_ns > since_ns]
        return [*late, *self.look()]

    def look(self) -> list[Path]:
        """The files that have changed since the last look."""
        before = self._states
        self._states = {}
        folders = dict.fromkeys(path.parent for path in self._read)
        for folder, files in self._tree():
            folders[folder] = None
            self._states.update(dict.fromkeys(files))
        self._states.update(dict.fromkeys(self._read))
        for path in self._states:
            known = before.get(path)
            self._states[path] = known if known is not None and has_state(path, known) else _state(path)
        self._follow(folders)
        return [path for path in {**before, **self._states} if before.get(path) != self._states.get(path)]

    def wait(self) -> list[Path]:
        """The files that have changed after a short wait; empty if there are none."""
        import watchfiles

        if self._polls or any(map(_is_remote, self._folders)):
            time.sleep(_POLL_S)
            return self.look()
        is_new = self._events is None
        if self._events is None:
            self._events = watchfiles.watch(
                *self._folders,
                watch_filter=None,
                debounce=_LONGEST_SAVE_MS,
                step=_QUIET_MS,
                rust_timeout=_TICK_MS,
                yield_on_timeout=True,
                force_polling=False,
                recursive=False,
            )
        try:
            happened = next(self._events)
        except OSError as error:  # a folder was just removed, or the system allows no more watches
            self._events, happened = None, None
            self._polls = not isinstance(error, FileNotFoundError)
            time.sleep(_POLL_S)
        return self.look() if is_new or happened else []

    def _follow(self, folders: Iterable[Path]) -> None:
        """Watch `folders`, and restart the watch if one was created, removed or replaced."""
        found: dict[Path, int] = {}
        for folder in folders:
            with contextlib.suppress(OSError):
                found[folder] = folder.stat().st_ino
        if found != self._folders:
            self._folders = found
            if self._events is not None:
                self._events.close()
                self._events = None

    def _tree(self) -> Iterator[tuple[Path, list[Path]]]:
        """The folders of the library, each with the sources in it."""
        for name, inner, files in os.walk(self._root):
            folder = self._root / name
            inner[:] = sorted(
                one
                for one in inner
                if not one.startswith(".") and one not in _ASIDE and not (folder / one / "pyvenv.cfg").exists()
            )
            yield folder, [folder / file for file in files if file.endswith(_SUFFIXES)]


def _state(path: Path) -> FileState | None:
    try:
        return state_of(path)
    except OSError:
        return None


def _is_remote(folder: Path) -> bool:
    """Whether other machines can change files in `folder` without this system noticing."""
    mount = mount_of(folder)
    return mount is not None and mount.is_network
