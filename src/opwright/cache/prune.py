"""Removes the least recently used entries from a cache.

An entry is moved out of the cache atomically, while holding exclusively the lock that builds share to add entries and
renew their dates, and only if its date has not changed since it was selected. A build therefore finds an entry complete
or not at all.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from opwright.cache.bound import Bound
from opwright.cache.entries import OLDER, Entry, bookkeeping, last_use, list_entries
from opwright.cache.records import read_bytes
from opwright.cache.usage import SPARED_S, Usage
from opwright.storage.file_system import mount_of
from opwright.storage.lock import locked

if TYPE_CHECKING:
    from collections.abc import Iterator

# How often builds check the size of the cache.
INTERVAL_S = 600.0
# How long to wait for a moment in which no entry is added.
_PATIENCE_S = 5.0
_LOCK = "prune"
_PRODUCT = re.compile(rb'"product": "([^"]+)"')


@dataclass(frozen=True)
class Pruned:
    """The entries that were removed from a cache.

    Attributes:
        removed: the removed entries, or those that would be removed.
        size: the remaining bytes.
        spared: the bytes of entries that were used too recently to be removed.
    """

    removed: tuple[Entry, ...]
    size: int
    spared: int


def stay_within(bound: Bound, root: Path) -> None:
    """Prune the cache at `root` after a build, unless a build did so recently. Errors are ignored."""
    stamp = root / "pruned"
    with contextlib.suppress(OSError):
        with contextlib.suppress(FileNotFoundError):
            if 0 <= time.time() - stamp.stat().st_mtime < INTERVAL_S:
                return
        stamp.touch()
        mount = mount_of(root)
        if mount is None or not mount.is_network:
            prune(root, bound)
        elif mount.locks_reach_other_machines:
            # A process on another machine loses files that it has opened, and may run long: remove only old entries.
            prune(root, Bound(None, bound.age_s))


def prune(root: Path, bound: Bound, *, spared_s: float = SPARED_S, dry_run: bool = False) -> Pruned:
    """Remove the least recently used entries that exceed `bound`.

    Args:
        root: the folder of the cache.
        bound: the limits of the cache.
        spared_s: entries used within this many seconds always stay.
        dry_run: only return what would be removed.

    Raises:
        OSError: the cache cannot be written.
    """
    entries = list_entries(root)
    if dry_run:
        now = time.time()
        return _pruned(entries, list(_chosen(entries, bound, now, spared_s, bookkeeping(root))), now - spared_s)
    (root / "locks").mkdir(parents=True, exist_ok=True)
    removed: list[Entry] = []
    now = _now(root)
    with locked(root / "locks" / f"{_LOCK}.lock", patience_s=0) as alone:
        if alone:  # otherwise another process is pruning
            chosen = _chosen(entries, bound, now, spared_s, bookkeeping(root))
            removed = [entry for entry in chosen if _remove(root, entry)]
            if removed:
                _sweep_records(root)
            _sweep_entries(root, now)
            _sweep_locks(root, now)
    return _pruned(entries, removed, now - spared_s)


def _chosen(entries: list[Entry], bound: Bound, now: float, spared_s: float, more: int) -> Iterator[Entry]:
    """The entries to remove, the least recently used first; `more` bytes do not belong to entries."""
    left = sum(entry.size for entry in entries) + more
    for entry in reversed(entries):
        age_s = now - entry.used_at
        too_old = bound.age_s is not None and age_s > bound.age_s
        # An older layout does not record when entries are used.
        too_much = bound.size is not None and left > bound.size and entry.kind != OLDER
        if age_s >= spared_s and (too_old or too_much):
            left -= entry.size
            yield entry


def _remove(root: Path, entry: Entry) -> bool:
    """Remove `entry`, unless it was used or added again after it was listed."""
    with contextlib.ExitStack() as held:
        if not held.enter_context(Usage(root).removing(_PATIENCE_S)):
            return False
        if entry.date is None and entry.kind != OLDER:
            foreign = locked(root / "locks" / entry.place.parent.name, patience_s=0)
            if not held.enter_context(foreign):
                return False
        if last_use(entry) > entry.used_at:
            return False
        (root / "work").mkdir(exist_ok=True)
        # Named like the folder of a killed build, so that the next build removes it if this process is killed.
        aside = Path(tempfile.mkdtemp(prefix=f"{_LOCK}.", dir=root / "work"))
        try:
            _take_away(entry, aside)
        except FileNotFoundError:
            return False
        finally:
            held.close()
            shutil.rmtree(aside, ignore_errors=True)
    return True


def _take_away(entry: Entry, aside: Path) -> None:
    if entry.place.parent.name == "folders":
        entry.place.with_suffix(".json").unlink(missing_ok=True)
    entry.place.rename(aside / entry.place.name)
    if entry.date is not None:
        entry.date.unlink(missing_ok=True)


def _sweep_records(root: Path) -> None:
    """Remove the records of builds whose products do not exist any more."""
    for record in (root / "recipes").glob("*.json"):
        with contextlib.suppress(OSError):
            before = record.stat()
            products = _PRODUCT.findall(read_bytes(record) or b"")
            if any((root / product.decode()).exists() for product in products):
                continue
            with Usage(root).removing(_PATIENCE_S) as alone:
                now = record.stat()
                if alone and (now.st_ino, now.st_mtime_ns) == (before.st_ino, before.st_mtime_ns):
                    record.unlink()


def _sweep_entries(root: Path, now: float) -> None:
    """Remove the description files of entries that do not exist any more."""
    dates = {entry.date for entry in list_entries(root)}
    for date in set((root / "entries").glob("*.json")) - dates:
        with contextlib.suppress(OSError), Usage(root).removing(_PATIENCE_S) as alone:
            if alone and now - date.stat().st_mtime > SPARED_S:
                date.unlink()


def _sweep_locks(root: Path, now: float) -> None:
    """Remove the locks of builds that finished long ago."""
    for path in (root / "locks").glob("*.lock"):
        with contextlib.suppress(OSError):
            if now - path.stat().st_mtime > SPARED_S:
                with locked(path, patience_s=0) as alone:
                    if alone:
                        path.unlink()


def _now(root: Path) -> float:
    """The time of the file system, which may differ from that of this machine."""
    with contextlib.suppress(OSError):
        (root / "pruned").touch()
        return (root / "pruned").stat().st_mtime
    return time.time()


def _pruned(entries: list[Entry], removed: list[Entry], recent: float) -> Pruned:
    size = sum(entry.size for entry in entries) - sum(entry.size for entry in removed)
    return Pruned(tuple(removed), size, sum(entry.size for entry in entries if entry.used_at > recent))
