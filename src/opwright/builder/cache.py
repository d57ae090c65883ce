"""Stores finished objects and libraries, keyed by the content that they were built from.

Layout, below one folder:
    objects/<recipe>/     manifest.json, and one object for each set of headers that it was compiled with
    libraries/<recipe>/   <name>.so
    folders/<recipe>/     what another build system installed
    inline/<content>/     sources that were given as strings
    work/<recipe>.<…>/    a build in progress; only the build itself reads it
    locks/<recipe>.lock   held by the process that builds; the system releases it when the process ends
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opwright.errors import CacheError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from filelock import FileLock

# Changed with the layout or the meaning of an entry, so that old and new caches can share a folder.
LAYOUT = "2"
# Headers change back and forth with branches. Beyond this many sets, the oldest is dropped.
_MOST_VARIANTS = 8
_SLOW_WAIT_S = 2.0


def digest(parts: Iterable[str | bytes]) -> str:
    """A name for content, which is equal only for equal parts."""
    hasher = hashlib.sha256()
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        hasher.update(len(raw).to_bytes(8, "little"))
        hasher.update(raw)
    return hasher.hexdigest()[:40]


class Cache:
    """Finished builds, keyed by content.

    Args:
        root: the folder; by default `$OPWRIGHT_CACHE`, else the user's cache folder.
    """

    def __init__(self, root: Path | None = None) -> None:
        chosen = root or os.environ.get("OPWRIGHT_CACHE") or _user_folder()
        self.root = Path(chosen).expanduser().absolute() / LAYOUT

    # -- objects ------------------------------------------------------------------------------------

    def find_object(self, recipe: str) -> Path | None:
        """The object of `recipe` with the current headers; None if the cache lacks it."""
        folder = self.root / "objects" / recipe
        for variant in _manifest(folder):
            product: Path = folder / variant["object"]
            if _size(product) == variant["bytes"] and all(map(_unchanged, variant["headers"])):
                return product
        return None

    def keep_object(self, recipe: str, product: Path, headers: Iterable[Path]) -> Path:
        """Move `product` into the cache, with the state of every header that its compilation read."""
        with self._writing():
            folder = self.root / "objects" / recipe
            folder.mkdir(parents=True, exist_ok=True)
            content = product.read_bytes()
            name = f"{hashlib.sha256(content).hexdigest()[:40]}.o"
            variant = {"object": name, "bytes": len(content), "headers": [_state(path) for path in headers]}
            product.replace(folder / name)
            others = [known for known in _manifest(folder) if known["headers"] != variant["headers"]]
            _write_whole(folder / "manifest.json", json.dumps([variant, *others][:_MOST_VARIANTS]))
            return folder / name

    # -- libraries ----------------------------------------------------------------------------------

    def find_library(self, recipe: str, name: str) -> Path | None:
        """The finished library `name` of `recipe`; None if it is missing or incomplete."""
        folder = self.root / "libraries" / recipe
        product = folder / f"{name}.so"
        with contextlib.suppress(OSError, ValueError, KeyError):
            if _size(product) == json.loads((folder / f"{name}.json").read_text())["bytes"]:
                return product
        return None

    def keep_library(self, recipe: str, name: str, product: Path) -> Path:
        """Move the finished library `product` into the cache, atomically."""
        with self._writing():
            folder = self.root / "libraries" / recipe
            folder.mkdir(parents=True, exist_ok=True)
            size = product.stat().st_size
            # Renamed, so that a process that has mapped the old file keeps it.
            product.replace(folder / f"{name}.so")
            _write_whole(folder / f"{name}.json", json.dumps({"bytes": size}))
            return folder / f"{name}.so"

    # -- folders ------------------------------------------------------------------------------------

    def find_folder(self, recipe: str) -> Path | None:
        """The finished folder of `recipe`; None if it is missing."""
        folder = self.root / "folders" / recipe
        return folder if folder.is_dir() else None

    def keep_folder(self, recipe: str, product: Path) -> Path:
        """Move the finished folder `product` into the cache, atomically."""
        with self._writing():
            folder = self.root / "folders" / recipe
            folder.parent.mkdir(parents=True, exist_ok=True)
            product.rename(folder)
            return folder

    # -- sources ------------------------------------------------------------------------------------

    def keep_source(self, text: str, name: str) -> Path:
        """A file that contains `text`; the path is the same for the same text."""
        with self._writing():
            path = self.root / "inline" / digest([text, name]) / name
            if not path.is_file() or path.read_text() != text:
                path.parent.mkdir(parents=True, exist_ok=True)
                _write_whole(path, text)
            return path

    def size(self) -> int:
        """The size of the cache in bytes.

        Raises:
            CacheError: it cannot be written.
        """
        with self._writing():
            self.root.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=self.root).close()
            return sum(path.stat().st_size for path in self.root.rglob("*") if path.is_file())

    # -- builds in progress -------------------------------------------------------------------------

    @contextlib.contextmanager
    def building(self, recipe: str, on_wait: Callable[[str], None]) -> Iterator[Path]:
        """Hold the lock of `recipe`, and yield an empty folder to build in.

        Other processes that need the same build wait, which `on_wait` reports to the user. The system
        releases the lock when its holder dies, for whatever reason.
        """
        from filelock import FileLock

        with self._writing():
            for folder in ("locks", "work"):
                (self.root / folder).mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.root / "locks" / f"{recipe}.lock")
        _acquire(lock, on_wait)
        try:
            with self._writing():
                # Left by a process that held the lock and died.
                for stale in (self.root / "work").glob(f"{recipe}.*"):
                    shutil.rmtree(stale, ignore_errors=True)
                # A new name: a compiler that outlived its killed parent may still write to the old folder.
                work = Path(tempfile.mkdtemp(prefix=f"{recipe}.", dir=self.root / "work"))
            try:
                yield work
            finally:
                shutil.rmtree(work, ignore_errors=True)
        finally:
            lock.release()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            msg = (
                f"the cache at {self.root} cannot be written: {error.strerror or error}. "
                "Free some space, fix its permissions, or set OPWRIGHT_CACHE to a folder that can be written"
            )
            raise CacheError(msg) from error


def _user_folder() -> Path:
    import platformdirs

    return platformdirs.user_cache_path("opwright")


def _acquire(lock: FileLock, on_wait: Callable[[str], None]) -> None:
    from filelock import Timeout

    with contextlib.suppress(Timeout):
        lock.acquire(timeout=_SLOW_WAIT_S)
        return
    since = time.monotonic()
    on_wait(f"another process is building this; waiting for it (lock: {lock.lock_file})")
    lock.acquire()
    on_wait(f"waited {time.monotonic() - since + _SLOW_WAIT_S:.0f} s for the other build")


def _manifest(folder: Path) -> list[dict[str, Any]]:
    try:
        variants = json.loads((folder / "manifest.json").read_text())
        return [variant for variant in variants if {"object", "bytes", "headers"} <= set(variant)]
    except (OSError, ValueError, TypeError):
        return []  # missing or damaged: build again


def _state(path: Path) -> list[str | int]:
    status = path.stat()
    content = hashlib.sha256(path.read_bytes()).hexdigest()
    return [str(path), status.st_size, status.st_mtime_ns, status.st_ctime_ns, content]


def _unchanged(state: list[Any]) -> bool:
    try:
        path, size, mtime_ns, ctime_ns, content = state
        status = os.stat(path)  # noqa: PTH116  called a thousand times in a cached build, and Path.stat() is three times slower
        if status.st_size != size:
            return False
        # Unlike the time of modification, the time of the last change of any kind cannot be set back.
        if (status.st_mtime_ns, status.st_ctime_ns) == (mtime_ns, ctime_ns):
            return True
        # A touched file with the same bytes is unchanged: a fresh checkout touches every file.
        return bool(hashlib.sha256(Path(path).read_bytes()).hexdigest() == content)
    except (OSError, ValueError):
        return False


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def _write_whole(path: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
