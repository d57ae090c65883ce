"""Stores finished objects and libraries, found by what they were built from.

Layout, below one folder:
    recipes/<recipe>.json   for each set of files that a build of the recipe read, which product it gave
    objects/<content>.o
    libraries/<content>/    <name>.so
    precompiled/<content>/  headers.h.gch
    folders/<recipe>/       what another build system installed; <recipe>.json says what each file holds
    inductor/               what Inductor keeps, in its own way
    inline/<content>/       sources that were given as strings
    entries/<…>.json        what each of these is; dated when it was last used
    work/<recipe>.<…>/      a build in progress; only the build itself reads it
    locks/<recipe>.lock     held by the process that builds; the system releases it when the process ends
    locks/keep              shared by those that put things in place, and held alone by whoever removes them
    locks/builds            shared by all builds

Every file is made in a folder below work/ and renamed when it is complete and on the disk. What a file holds is
compared with its digest before it is given out, unless the system says that nobody has changed it since.
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

# Headers change back and forth with branches. Beyond this many sets, the oldest is dropped.
_MOST_VARIANTS = 8
_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.ESTALE}


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
        root: the folder; by default `$OPWRIGHT_CACHE`, else the user's cache folder, and below it, for what it lacks,
            the folders that `$OPWRIGHT_SHARED_CACHE` names, where nothing is written.

    Raises:
        CacheError: a folder that `$OPWRIGHT_SHARED_CACHE` names can be written by anybody.
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
        """The object or library of `recipe` from files as they are now; None if the cache lacks it or it is damaged."""
        found = self.find_with_read(recipe)
        return found[0] if found else None

    def find_with_read(self, recipe: str) -> tuple[Path, dict[str, FileState]] | None:
        """What `find` finds, and what was read to make it, each file with its state."""
        return next(filter(None, (layer.find(recipe) for layer in (self._own, *self._shared))), None)

    def files_read(self, recipe: str) -> set[str]:
        """The files that compilers read for `recipe`, besides the source; empty if that was never compiled."""
        return self._own.files_read(recipe)

    def keep_object(
        self,
        recipe: str,
        product: Path,
        read: Mapping[str, FileState] | None,
        absent: Iterable[str] = (),
        about: Mapping[str, str] | None = None,
    ) -> Path:
        """Move the object `product`, made in a folder of `building`, into the cache.

        Where it is not known what was read, `read` is None, and `find` will not find the product.

        Args:
            recipe: the key.
            product: the file.
            read: what the compiler read, each with its state then.
            absent: files that it would have read instead, had they been there, and folders, which end with a slash.
            about: what to list of it: its `name`, and for what it was made.
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
        """Move precompiled headers and the `header` that names them into the cache; otherwise as `keep_object`."""

        def place(content: str) -> str:
            # The header first: what has a record is complete.
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
            # One of the same content stays: over a network, another machine may have mapped it.
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
        """Move the finished folder `product`, made in a folder of `building`, into the cache; `about` as elsewhere."""
        with self._writing(), self._usage.keeping():
            folder = self.root / "folders" / recipe
            folder.parent.mkdir(parents=True, exist_ok=True)
            flush_tree(product)
            self._usage.describe(recipe, about or {}, product.parent)
            if os.path.lexists(folder):  # damaged: it goes with the rest of the work folder
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
        # A shared one first: what was built from it is found by its path.
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
        """Whether `path` lies in this cache or in a shared one, where the name of a source is a hash of its content."""
        return str(path).startswith(tuple(f"{layer.root}/" for layer in (self._own, *self._shared)))

    # -- what other programs keep -------------------------------------------------------------------

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

    @contextlib.contextmanager
    def using_foreign_folder(self, name: str) -> Iterator[Path]:
        """The same, of which nothing is removed meanwhile."""
        folder = self.foreign_folder(name)
        with contextlib.ExitStack() as held:
            with self._writing():
                (self.root / "locks").mkdir(exist_ok=True)
                held.enter_context(locked(self.root / "locks" / name, shared=True))
            yield folder

    # -- what is there ------------------------------------------------------------------------------

    def entries(self) -> dict[Path, list[Entry]]:
        """What this cache holds, and then the shared ones, by their folders, the most recently used first.

        Raises:
            CacheError: one of them cannot be read.
        """
        from opwright.cache.entries import list_entries

        roots = [layer.root for layer in (self._own, *self._shared)]
        for root in roots:
            if root.exists() and not os.access(root, os.R_OK | os.X_OK):
                msg = f"the cache at {root} cannot be read: fix its permissions, or set OPWRIGHT_CACHE elsewhere"
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
        """Remove what is beyond `bound`, the least recently used first, and nothing that was used within a day.

        Args:
            bound: what may stay.
            dry_run: only say what would be removed.

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
        msg = f"the cache at {self.root} is in use: a build is in progress there. Wait for its end, or end it"
        raise CacheError(msg)

    # -- builds in progress -------------------------------------------------------------------------

    @contextlib.contextmanager
    def building(self, recipe: str, on_wait: Callable[[str], None]) -> Iterator[Path]:
        """Hold the lock of `recipe`, and yield an empty folder to build in.

        Other processes that need the same build wait, which `on_wait` reports to the user. The system
        releases the lock when its holder dies, for whatever reason. At the end, if the cache is larger than its
        bound, what was not used for longest is removed.

        Raises:
            CacheError: the cache cannot be written, or its file system has no locks.
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
        (work / path.name).write_text(text)  # with the permissions of other files, so that others can read it
        place_file(work / path.name, path, self.root)

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
