"""Stores finished objects and libraries, found by what they were built from.

Layout, below one folder:
    recipes/<recipe>.json   for each set of files that a build of the recipe read, which product it gave
    objects/<content>.o
    libraries/<content>/    <name>.so
    folders/<recipe>/       what another build system installed; <recipe>.json says what each file holds
    inductor/               what Inductor keeps, in its own way
    inline/<content>/       sources that were given as strings
    work/<recipe>.<…>/      a build in progress; only the build itself reads it
    locks/<recipe>.lock     held by the process that builds; the system releases it when the process ends

Every file is made in a folder below work/ and renamed when it is complete and on the disk. What a file holds is
compared with its digest before it is given out, unless the system says that nobody has changed it since.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opwright.builder.file_state import FileState, has_state, state_of
from opwright.errors import CacheError
from opwright.storage.flush import flush, flush_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from filelock import FileLock

# Changed with the layout or the meaning of an entry, so that old and new caches can share a folder.
LAYOUT = "3"
# Headers change back and forth with branches. Beyond this many sets, the oldest is dropped.
_MOST_VARIANTS = 8
_SLOW_WAIT_S = 2.0
_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO}


def digest(parts: Iterable[str | bytes]) -> str:
    """A name for content, which is equal only for equal parts."""
    hasher = hashlib.sha256()
    for part in parts:
        raw = part.encode(errors="surrogateescape") if isinstance(part, str) else part
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

    # -- objects and libraries ----------------------------------------------------------------------

    def find(self, recipe: str) -> Path | None:
        """The object or library of `recipe` from files as they are now; None if the cache lacks it or it is damaged."""
        for variant in _records(self._record(recipe)):
            with contextlib.suppress(KeyError, TypeError, AttributeError, ValueError):  # another form: build again
                product: Path = self.root / variant["product"]
                if (
                    has_state(product, variant["state"])
                    and all(has_state(path, state) for path, state in variant["read"].items())
                    and not any(map(os.path.lexists, variant["absent"]))
                ):
                    return product
        return None

    def keep_object(
        self, recipe: str, product: Path, read: Mapping[str, FileState], absent: Iterable[str] = ()
    ) -> Path:
        """Move the object `product`, made in a folder of `building`, into the cache.

        Args:
            recipe: the key.
            product: the file.
            read: what the compiler read, each with its state then.
            absent: files that it would have read instead, had they been there.
        """
        return self._keep(recipe, product, lambda content: f"objects/{content}.o", read, absent)

    def keep_library(
        self, recipe: str, product: Path, name: str, read: Mapping[str, FileState] | None, absent: Iterable[str] = ()
    ) -> Path:
        """Move a library or a program into the cache under its `name`; otherwise as `keep_object`.

        Where it is not known what the linker read, `read` is None, and `find` will not find the product.
        """
        return self._keep(recipe, product, lambda content: f"libraries/{content}/{name}.so", read, absent)

    def _keep(
        self,
        recipe: str,
        product: Path,
        place: Callable[[str], str],
        read: Mapping[str, FileState] | None,
        absent: Iterable[str],
    ) -> Path:
        with self._writing():
            where = place(str(state_of(product, hash_all=True).content)[:40])
            kept = self.root / where
            # Renamed, so that a process that has mapped an old file of this name keeps it.
            _move(product, kept)
            if read is None:
                return kept
            files = {path: list(state) for path, state in read.items()}
            state = list(state_of(kept, hash_all=True))
            variant = {"product": where, "state": state, "read": files, "absent": sorted(absent)}
            record = self._record(recipe)
            others = [known for known in _records(record) if known.get("read") != files]
            self._write(record, json.dumps([variant, *others][:_MOST_VARIANTS]), product.parent)
            return kept

    def _record(self, recipe: str) -> Path:
        return self.root / "recipes" / f"{recipe}.json"

    # -- folders ------------------------------------------------------------------------------------

    def find_folder(self, recipe: str) -> Path | None:
        """The finished folder of `recipe`; None if it is missing or damaged."""
        folder = self.root / "folders" / recipe
        with contextlib.suppress(OSError, ValueError, AttributeError):
            files = json.loads(folder.with_suffix(".json").read_text())
            if files and all(has_state(folder / name, state) for name, state in files.items()):
                return folder
        return None

    def keep_folder(self, recipe: str, product: Path) -> Path:
        """Move the finished folder `product`, made in a folder of `building`, into the cache."""
        with self._writing():
            folder = self.root / "folders" / recipe
            folder.parent.mkdir(parents=True, exist_ok=True)
            flush_tree(product)
            if folder.is_dir():  # damaged: it goes with the rest of the work folder
                folder.rename(product.with_name("damaged"))
            product.rename(folder)
            files = {
                str(path.relative_to(folder)): state_of(path, hash_all=True)
                for path in sorted(folder.rglob("*"))
                if path.is_file()
            }
            self._write(folder.with_suffix(".json"), json.dumps(files), product.parent)
            return folder

    # -- sources ------------------------------------------------------------------------------------

    def keep_source(self, text: str, name: str) -> Path:
        """A file that contains `text`; the path is the same for the same text."""
        content = digest([text, name])
        path = self.root / "inline" / content / name
        raw = text.encode(errors="surrogateescape")
        if not _holds(path, raw):
            with self.building(content, lambda _: None) as work, self._writing():
                if not _holds(path, raw):
                    (work / name).write_bytes(raw)
                    _move(work / name, path)
        return path

    def foreign_folder(self, name: str) -> Path:
        """A folder for what another program caches in its own way, such as Inductor.

        Raises:
            CacheError: it cannot be made.
        """
        folder = self.root / name
        with self._writing():
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        return folder

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

        Raises:
            CacheError: the cache cannot be written.
        """
        with self._writing():
            for folder in ("locks", "work"):
                (self.root / folder).mkdir(parents=True, exist_ok=True)
            lock = self._lock(recipe)
            _acquire(lock, on_wait)
        try:
            with self._writing():
                self._sweep(recipe)
                # A new name: a compiler that outlived its killed parent may still write to the old folder.
                work = Path(tempfile.mkdtemp(prefix=f"{recipe}.", dir=self.root / "work"))
            try:
                yield work
            except OSError as error:
                if error.errno in _DISK or str(error.filename).startswith(str(self.root)):
                    raise cannot_write(self.root, error.strerror or str(error)) from error
                raise
            finally:
                shutil.rmtree(work, ignore_errors=True)
        finally:
            lock.release()

    def _sweep(self, own: str) -> None:
        """Remove the folders of builds whose process died, of `own`, whose lock is held here, and of others."""
        from filelock import Timeout

        for left in (self.root / "work").iterdir():
            recipe = left.name.partition(".")[0]
            if recipe == own:
                shutil.rmtree(left, ignore_errors=True)
                continue
            with contextlib.suppress(OSError, Timeout), self._lock(recipe).acquire(blocking=False):
                shutil.rmtree(left, ignore_errors=True)

    def _lock(self, recipe: str) -> FileLock:
        from filelock import FileLock

        return FileLock(self.root / "locks" / f"{recipe}.lock")

    def _write(self, path: Path, text: str, work: Path) -> None:
        (work / path.name).write_text(text)  # with the permissions of other files, so that others can read it
        _move(work / path.name, path)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise cannot_write(self.root, error.strerror or str(error)) from error


def cannot_write(root: Path, why: str) -> CacheError:
    """The error for a cache that `why` keeps from being written."""
    return CacheError(
        f"the cache at {root} cannot be written: {why}. "
        "Free some space, fix its permissions, or set OPWRIGHT_CACHE to a folder that can be written"
    )


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


def _records(path: Path) -> list[Any]:
    try:
        variants = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return []  # missing or damaged: build again
    return [variant for variant in variants if isinstance(variant, dict)] if isinstance(variants, list) else []


def _holds(path: Path, raw: bytes) -> bool:
    try:
        return path.read_bytes() == raw
    except OSError:
        return False


def _move(made: Path, place: Path) -> None:
    """Rename the complete file `made` to `place`, which holds all of it from then on, a power cut included."""
    flush(made)
    place.parent.mkdir(parents=True, exist_ok=True)
    made.replace(place)
    flush(place.parent)
