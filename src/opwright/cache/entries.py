"""Lists the entries of a cache, each with its size and the time of its last use."""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from opwright.cache.layer import LAYOUT
from opwright.cache.records import read_json
from opwright.cache.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OLDER = "older layout"
# Folders of entries that have description files, each with the name of its kind.
_KINDS = {
    "libraries": "library",
    "objects": "object",
    "precompiled": "precompiled",
    "folders": "folder",
    "inline": "source",
}
# Folders that contain no entries.
_ASIDE = {"entries", "recipes", "locks", "work"}


@dataclass(frozen=True)
class Entry:
    """One entry of a cache.

    Attributes:
        kind: `library`, `object`, `precompiled`, `folder`, `source`, or the name of another program's folder.
        place: the file or the folder.
        size: its size in bytes.
        used_at: the time of its last use, in seconds since the epoch, to within an hour.
        name: its name; for a library, its namespace.
        about: what it was built from: `torch`, `compiler` and `source`, where known.
        date: the file whose date is the time of the last use; None for entries of other programs.
    """

    kind: str
    place: Path
    size: int
    used_at: float
    name: str
    about: dict[str, str] = field(default_factory=dict)
    date: Path | None = None


def list_entries(root: Path) -> list[Entry]:
    """All entries of the cache at `root`, the most recently used first."""
    found = [*_own(root), *_foreign(root), *_older(root)]
    return sorted(found, key=lambda entry: entry.used_at, reverse=True)


def last_use(entry: Entry) -> float:
    """The current time of the last use of `entry`, read from the file system."""
    if entry.date is not None:
        with contextlib.suppress(OSError):
            return entry.date.stat().st_mtime
    return measure(entry.place)[1]


def bookkeeping(root: Path) -> int:
    """The size in bytes of the records and descriptions in the cache at `root`."""
    return sum(measure(root / name)[0] for name in ("recipes", "entries") if (root / name).is_dir())


def measure(path: Path | str) -> tuple[int, float]:
    """The size in bytes of a file, or of all files in a folder, and the time of the last write or move."""
    size, newest = 0, float("-inf")
    with contextlib.suppress(OSError):
        status = os.lstat(path)
        size, newest = status.st_size, max(status.st_mtime, status.st_ctime)
        if stat.S_ISDIR(status.st_mode):
            with os.scandir(path) as inner:
                measured = [measure(one.path) for one in inner]
            size = sum(one for one, _ in measured)
            newest = max([newest, *(one for _, one in measured)])
    return size, newest


def _own(root: Path) -> Iterator[Entry]:
    usage = Usage(root)
    for folder, kind in _KINDS.items():
        for place in _inside(root / folder):
            if place.suffix == ".json":
                continue
            size, used_at = measure(place)
            date = usage.entry(place.name.partition(".")[0])
            with contextlib.suppress(OSError):
                used_at = date.stat().st_mtime
            about = _strings(read_json(date))
            name = about.pop("name", place.name)
            yield Entry(kind, place, size, used_at, name, about, date)


def _foreign(root: Path) -> Iterator[Entry]:
    for folder in _inside(root):
        if folder.name not in {*_KINDS, *_ASIDE} and folder.is_dir():
            for place in _inside(folder):
                yield Entry(folder.name, place, *measure(place), place.name)


def _older(root: Path) -> Iterator[Entry]:
    for place in _inside(root.parent):
        if place.name.isdecimal() and int(place.name) < int(LAYOUT):
            yield Entry(OLDER, place, *measure(place), f"layout {place.name}")


def _inside(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if not path.is_symlink()]
    except OSError:
        return []


def _strings(about: object) -> dict[str, str]:
    if not isinstance(about, dict):
        return {}
    return {key: text for key, text in about.items() if isinstance(text, str)}
