"""Stores finished objects and libraries, keyed by what they were built from.

Layout, below one folder:
    recipes/<recipe>.json   the product of the recipe for each set of files that a build of it read
    objects/<content>.o
    libraries/<content>/    <name>.so
    precompiled/<content>/  headers.h.gch
    folders/<recipe>/       files that another build system installed; <recipe>.json lists the state of each
    inductor/               Inductor's own cache
    inline/<content>/       sources that were passed as strings
    entries/<…>.json        a description of each entry, dated when the entry was last used
    work/<recipe>.<…>/      a build in progress; only the build itself reads it
    locks/<recipe>.lock     held by the building process; the system releases it when the process exits
    locks/keep              shared by processes that add entries, and held exclusively to remove them
    locks/builds            shared by all builds

Every file is created in a folder below work/, and renamed after it is complete and flushed to disk. The content of a
file is compared with its digest before the file is used, unless its metadata shows that it has not changed.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from opwright.cache.bound import Bound
from opwright.cache.file_state import FileState, holds_content, state_as, state_of
from opwright.cache.layer import LAYOUT, Layer, shared_layers
from opwright.cache.locks import check_locks
from opwright.cache.place import place_file
from opwright.cache.records import grouped, is_inside, read_variants
from opwright.cache.usage import Usage
from opwright.errors import CacheError
from opwright.storage.flush import flush_tree
from opwright.storage.lock import locked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from opwright.cache.entries import Entry
    from opwright.cache.prune import Pruned

# Switching branches changes headers back and forth. Beyond this number of sets, the oldest is dropped.
_MOST_VARIANTS = 8
_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.ESTALE}


def digest(parts: Iterable[str | bytes]) -> str:
    """A hash of `parts` that is equal only for equal parts."""
    hasher = hashlib.sha256()
    for part in parts:
        raw = part.encode(errors="surrogateescape") if isinstance(part, str) else part
        hasher.update(len(raw).to_bytes(8, "little"))
        hasher.update(raw)
    return hasher.hexdigest()[:40]


class Cache:
    """Finished builds, keyed by content.

    Args:
        root: the folder; by default `$OPWRIGHT_CACHE` or the user's cache folder, and, for entries that it lacks, the
            folders in `$OPWRIGHT_SHARED_CACHE`, which are only read.

    Raises:
        CacheError: a folder in `$OPWRIGHT_SHARED_CACHE` is world-writable.
    """

    def __init__(self, root: Path | None = None) -> None:
        chosen = root or os.environ.get("OPWRIGHT_CACHE") or _user_folder()
        self.root = Path(chosen).expanduser().absolute() / LAYOUT
        self._own = Layer(self.root)
        self._shared = shared_layers() if root is None else []
        self._usage = Usage(self.root)
        self._builds = self.root / "locks" / "builds"

    # -- objects and libraries ----------------------------------------------------------------------

    def find(self, recipe: str) -> Path | None:
        """The object or library of `recipe` for the current files; None if it is missing or damaged."""
        found = self.find_with_read(recipe)
        return found[0] if found else None

    def find_with_read(self, recipe: str) -> tuple[Path, dict[str, FileState]] | None:
        """The result of `find`, and the files that were read to build it, each with its state."""
        return next(filter(None, (layer.find(recipe) for layer in (self._own, *self._shared))), None)

    def files_read(self, recipe: str) -> set[str]:
        """The files that compilers read for `recipe`, in addition to the source; empty if it was never compiled."""
        return self._own.files_read(recipe)

    def keep_object(
        self,
        recipe: str,
        product: Path,
        read: Mapping[str, FileState] | None,
        absent: Iterable[str] = (),
        about: Mapping[str, str] | None = None,
    ) -> Path:
        """Move the object `product`, created in a folder of `building`, into the cache.

        Args:
            recipe: the key.
            product: the file.
            read: the files that the compiler read, each with its state at that time; None if they are not known, in
                which case `find` will not find the product.
            absent: files that it would have read instead if they existed, and folders, which end with a slash.
            about: the description of the entry: its `name`, and what it was built from.
        """
        return self._keep(recipe, product, lambda content: f"objects/{content}.o", read, absent, about)

    def keep_library(
        self,
        recipe: str,
        product: Path,
        name: str,
        read: Mapping[str, FileState] | None,
        absent: Iterable[str] = (),
        about: Mapping[str, str] | None = None,
    ) -> Path:
        """Move a library or a program into the cache under its `name`; otherwise as `keep_object`."""
        return self._keep(
            recipe,
            product,
            lambda content: f"libraries/{content}/{name}.so",
            read,
            absent,
            {"name": name, **(about or {})},
        )

    def keep_precompiled(
        self,
        recipe: str,
        product: Path,
        header: Path,
        read: Mapping[str, FileState],
        absent: Iterable[str] = (),
        about: Mapping[str, str] | None = None,
    ) -> Path:
        """Move precompiled headers, and the `header` that includes them, into the cache; otherwise as `keep_object`."""

        def place(content: str) -> str:
            # The header first, because a product with a record must be complete.
            place_file(header, self.root / "precompiled" / content / header.name, self.root)
            return f"precompiled/{content}/{product.name}"

        return self._keep(recipe, product, place, read, absent, about)

    def _keep(
        self,
        recipe: str,
        product: Path,
        place: Callable[[str], str],
        read: Mapping[str, FileState] | None,
        absent: Iterable[str],
        about: Mapping[str, str] | None,
    ) -> Path:
        with self._writing(), self._usage.keeping():
            made = state_of(product, hash_all=True)
            content = str(made.content)
            where = place(content[:40])
            kept = self.root / where
            self._usage.describe(content[:40], about or {}, product.parent)
            # An existing file with the same content stays: over a network, another machine may have mapped it.
            if not (is_inside(self.root, where) and holds_content(kept, made.size, content)):
                place_file(product, kept, self.root)
            if read is None:
                return kept
            files = {path: list(state) for path, state in read.items()}
            variant = {"product": where, "state": list(state_as(kept, made)), "read": files, "absent": grouped(absent)}
            record = self._own.record(recipe)
            others = [known for known in read_variants(record) if known.get("read") != files]
            self._write(record, json.dumps([variant, *others][:_MOST_VARIANTS]), product.parent)
            return kept

    # -- folders ------------------------------------------------------------------------------------

    def find_folder(self, recipe: str) -> Path | None:
        """The finished folder of `recipe`; None if it is missing or damaged."""
        return next(filter(None, (layer.find_folder(recipe) for layer in (self._own, *self._shared))), None)

    def keep_folder(self, recipe: str, product: Path, about: Mapping[str, str] | None = None) -> Path:
        """Move the finished folder `product` of a `building` into the cache; arguments as for `keep_object`."""
        with self._writing(), self._usage.keeping():
            folder = self.root / "folders" / recipe
            folder.parent.mkdir(parents=True, exist_ok=True)
            flush_tree(product)
            self._usage.describe(recipe, about or {}, product.parent)
            if os.path.lexists(folder):  # damaged: it is removed with the work folder
                folder.rename(product.with_name("damaged"))
            product.rename(folder)
            files = {
                str(path.relative_to(folder)): state_of(path, hash_all=True)
                for path in sorted(folder.rglob("*"))
                if path.is_file()
            }
            self._write(self._own.folder_record(recipe), json.dumps(files), product.parent)
            return folder

    # -- sources ------------------------------------------------------------------------------------

    def keep_source(self, text: str, name: str) -> Path:
        """A file that contains `text`; the path is the same for the same text."""
        content = digest([text, name])
        raw = text.encode(errors="surrogateescape")
        # Shared files first: products built from a file are found by its path.
        for layer in (*self._shared, self._own):
            if (found := layer.find_source(content, name, raw)) is not None:
                return found
        path = self.root / "inline" / content / name
        with self.building(content, lambda _: None) as work, self._writing(), self._usage.keeping():
            self._usage.describe(content, {"name": name}, work)
            if not holds_content(path, len(raw), hashlib.sha256(raw).hexdigest()):
                (work / name).write_bytes(raw)
                place_file(work / name, path, self.root)
        return path

    def holds(self, path: Path) -> bool:
        """Whether `path` is in this cache or a shared one, where the path of a source contains its hash."""
        return str(path).startswith(tuple(f"{layer.root}/" for layer in (self._own, *self._shared)))

    # -- folders of other programs ------------------------------------------------------------------

    def foreign_folder(self, name: str) -> Path:
        """A folder in which another program, such as Inductor, keeps its own cache.

        Raises:
            CacheError: it cannot be created.
        """
        folder = self.root / name
        with self._writing():
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        return folder

    @contextlib.contextmanager
    def using_foreign_folder(self, name: str) -> Iterator[Path]:
        """The same folder, from which nothing is removed in this context."""
        folder = self.foreign_folder(name)
        with contextlib.ExitStack() as held:
            with self._writing():
                (self.root / "locks").mkdir(exist_ok=True)
                held.enter_context(locked(self.root / "locks" / name, shared=True))
            yield folder

    # -- contents -----------------------------------------------------------------------------------

    def entries(self) -> dict[Path, list[Entry]]:
        """The entries of this cache and then of the shared ones, by folder, the most recently used first.

        Raises:
            CacheError: one of them cannot be read.
        """
        from opwright.cache.entries import list_entries

        roots = [layer.root for layer in (self._own, *self._shared)]
        for root in roots:
            if root.exists() and not os.access(root, os.R_OK | os.X_OK):
                msg = f"the cache at {root} cannot be read: fix its permissions, or choose another OPWRIGHT_CACHE"
                raise CacheError(msg)
        return {root: list_entries(root) for root in roots}

    def size(self) -> int:
        """The size of the cache in bytes.

        Raises:
            CacheError: it cannot be written.
        """
        from opwright.cache.entries import measure

        with self._writing():
            self.root.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=self.root).close()
            return measure(self.root)[0]

    def prune(self, bound: Bound, *, dry_run: bool = False) -> Pruned:
        """Remove the least recently used entries that exceed `bound`, except those used within the last day.

        Args:
            bound: the limits of the cache.
            dry_run: only return what would be removed.

        Raises:
            CacheError: it cannot be written.
        """
        from opwright.cache.prune import prune

        with self._writing():
            return prune(self.root, bound, dry_run=dry_run)

    def clear(self, *, dry_run: bool = False) -> Pruned:
        """Remove everything.

        Raises:
            CacheError: it cannot be written, or a build is in progress.
        """
        from opwright.cache.prune import prune

        everything = functools.partial(prune, self.root, Bound(0, 0), spared_s=float("-inf"), dry_run=dry_run)
        if dry_run:
            return everything()
        with self._writing():
            self._builds.parent.mkdir(parents=True, exist_ok=True)
            with locked(self._builds, patience_s=0) as alone:
                if alone:
                    return everything()
        msg = f"the cache at {self.root} is in use by a build: wait until the build has finished, or stop it"
        raise CacheError(msg)

    # -- builds in progress -------------------------------------------------------------------------

    @contextlib.contextmanager
    def building(self, recipe: str, on_wait: Callable[[str], None]) -> Iterator[Path]:
        """Hold the lock of `recipe`, and yield an empty folder to build in.

        Other processes that require the same build wait, which `on_wait` reports to the user. The system releases the
        lock when its holder exits, for any reason. Afterwards, if the cache exceeds its limits, the least recently used
        entries are removed.

        Raises:
            CacheError: the cache cannot be written, or its file system does not support locks.
        """
        from opwright.cache.prune import stay_within
        from opwright.cache.work import WorkFolders

        bound = Bound.chosen()
        with contextlib.ExitStack() as held:
            with self._writing():
                for folder in ("locks", "work"):
                    (self.root / folder).mkdir(parents=True, exist_ok=True)
                check_locks(self._builds)
                held.enter_context(locked(self._builds, shared=True))
                folders = WorkFolders(self.root)
                held.enter_context(folders.locked(recipe, on_wait))
                work = folders.make(recipe)
            try:
                yield work
            except OSError as error:
                if error.errno in _DISK or str(error.filename).startswith(str(self.root)):
                    raise cannot_write(self.root, error.strerror or str(error)) from error
                raise
            finally:
                shutil.rmtree(work, ignore_errors=True)
        stay_within(bound, self.root)

    def _write(self, path: Path, text: str, work: Path) -> None:
        (work / path.name).write_text(text)  # with default permissions, so that other users can read it
        place_file(work / path.name, path, self.root)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise cannot_write(self.root, error.strerror or str(error)) from error


def cannot_write(root: Path, why: str) -> CacheError:
    """The error for a cache that cannot be written because of `why`."""
    return CacheError(
        f"the cache at {root} cannot be written: {why}. "
        "Free some space, fix its permissions, or set OPWRIGHT_CACHE to a writable folder"
    )


def _user_folder() -> Path:
    import platformdirs

    return platformdirs.user_cache_path("opwright")
