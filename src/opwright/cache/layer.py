"""Reads one folder of finished builds: the user's own cache, or one that is shared by several users."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from opwright.cache.file_state import FileState, has_state
from opwright.cache.records import current_product, read_bytes, read_json, read_variants
from opwright.cache.usage import Usage
from opwright.errors import CacheError

# Increased whenever the layout or the meaning of an entry changes, so that old and new caches can share a folder.
LAYOUT = "4"
SHARED = "OPWRIGHT_SHARED_CACHE"
_READ = ("", "recipes", "objects", "libraries", "precompiled", "folders", "inline")


class Layer:
    """A folder of finished builds.

    Args:
        root: the folder, including the layout number.
        shared: whether other users write it: it is only read, and world-writable files in it are not used.
    """

    def __init__(self, root: Path, *, shared: bool = False) -> None:
        self.root = root
        self._usage = None if shared else Usage(root)

    def find(self, recipe: str) -> tuple[Path, dict[str, FileState]] | None:
        """The product of `recipe` for the current files, and the files that it was built from; None if missing."""
        for variant in read_variants(self.record(recipe)):
            found = current_product(self.root, variant)
            if found is not None and self._takes(*found, self.record(recipe)):
                return found[1], {path: FileState(*state) for path, state in variant["read"].items()}
        return None

    def files_read(self, recipe: str) -> set[str]:
        """The files that were read for any product of `recipe`."""
        read = (variant.get("read") for variant in read_variants(self.record(recipe)))
        return {path for files in read if isinstance(files, dict) for path in files}

    def find_folder(self, recipe: str) -> Path | None:
        """The finished folder of `recipe`; None if it is missing or damaged."""
        folder = self.root / "folders" / recipe
        files = read_json(self.folder_record(recipe))
        if not isinstance(files, dict) or not files or folder.is_symlink():
            return None
        whole = all(has_state(folder / name, state) for name, state in files.items())
        return folder if whole and self._takes(recipe, folder, self.folder_record(recipe)) else None

    def find_source(self, content: str, name: str, raw: bytes) -> Path | None:
        """The file `name` with the bytes `raw`, whose digest is `content`; None if it is missing or damaged."""
        path = self.root / "inline" / content / name
        return path if read_bytes(path) == raw and self._takes(content, path, path) else None

    def record(self, recipe: str) -> Path:
        """The file that lists the products of `recipe`."""
        return self.root / "recipes" / f"{recipe}.json"

    def folder_record(self, recipe: str) -> Path:
        """The file that lists the state of each file in the folder of `recipe`."""
        return self.root / "folders" / f"{recipe}.json"

    def _takes(self, name: str, place: Path, record: Path) -> bool:
        """Whether the entry `name` at `place` can be used; if so, its use is recorded."""
        if self._usage is not None:
            return self._usage.renew(name, place)
        with contextlib.suppress(OSError):
            return not any(path.stat().st_mode & stat.S_IWOTH for path in (place, record))
        return False


def shared_layers() -> list[Layer]:
    """The layers that `$OPWRIGHT_SHARED_CACHE` names, separated by colons; missing folders are skipped.

    Raises:
        CacheError: a path is not absolute, or a folder is world-writable.
    """
    named = [Path(name) for name in os.environ.get(SHARED, "").split(os.pathsep) if name]
    for path in named:
        if not path.is_absolute():
            msg = f"{SHARED} contains the relative path {path}: expected absolute paths of folders, separated by colons"
            raise CacheError(msg)
    return [_checked(path) for path in named if (path / LAYOUT).is_dir()]


def _checked(path: Path) -> Layer:
    """The layer at `path`, after checking who can write to it: its files are loaded, and run as this user."""
    owners = {0, os.geteuid(), path.stat().st_uid}
    for above in path.resolve().parents:
        mode = above.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise _unsafe(path, above, "it is world-writable")
    for folder in (path, *(path / LAYOUT / part for part in _READ)):
        with contextlib.suppress(FileNotFoundError):
            status = folder.stat()
            if status.st_mode & stat.S_IWOTH:
                raise _unsafe(path, folder, "it is world-writable")
            if status.st_uid not in owners:
                raise _unsafe(path, folder, f"it belongs to user {status.st_uid}, and {path} does not")
    return Layer(path / LAYOUT, shared=True)


def _unsafe(path: Path, folder: Path, why: str) -> CacheError:
    return CacheError(
        f"the shared cache {path} is not used because of {folder}: {why}. Code in a cache runs as you: correct the "
        f"folder's owner and permissions (chmod o-w), or remove it from {SHARED}"
    )
