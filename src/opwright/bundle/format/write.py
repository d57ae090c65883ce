"""Writes the folder of a bundle atomically."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from opwright.bundle.format.limits import MANIFEST_BYTES
from opwright.bundle.format.manifest import DIGEST_NAME, FILE_NAME, FileFacts, Manifest
from opwright.bundle.format.names import check_path
from opwright.bundle.format.read import read_manifest
from opwright.errors import BundleError, CacheError
from opwright.storage.draft import drafting
from opwright.storage.flush import flush, flush_tree
from opwright.storage.full_disk import full_disk
from opwright.storage.rename import exchange, rename_to_free

if TYPE_CHECKING:
    from collections.abc import Iterator

_AT_ONCE = 2**20


@dataclass(frozen=True)
class Folder:
    """An unfinished bundle.

    Attributes:
        path: the hidden folder in which it is built; the bundle consists of every file in it at the end.
        target: where the bundle will be.
        force: whether it may replace an existing bundle.
    """

    path: Path
    target: Path
    force: bool

    def finish(self, manifest: Manifest) -> Manifest:
        """Write the manifest of all files in the folder, read it as a host does, and move the bundle into place.

        Args:
            manifest: the manifest without `files`, which are those in the folder.

        Returns:
            The complete manifest.

        Raises:
            BundleError: it cannot be written, a host would reject it, or the name of a file is not allowed.
        """
        whole = replace(manifest, files=_facts(self.path))
        text = _checked_text(whole)
        (self.path / FILE_NAME).write_bytes(text)
        (self.path / DIGEST_NAME).write_text(_digest_line(text))
        flush_tree(self.path)
        self._put()
        return whole

    def _put(self) -> None:
        try:
            rename_to_free(self.path, self.target)
        except FileExistsError as error:
            if not self.force:
                raise _taken(self.target) from error
            _check_may_go(self.target)
            exchange(self.path, self.target)
            # Check again in the hidden folder, to which no other process writes: the target may have changed meanwhile.
            try:
                _check_may_go(self.path)
            except BundleError as late:
                exchange(self.path, self.target)
                raise _stays(self.target) from late
        flush(self.target.parent)


@contextlib.contextmanager
def writing(target: Path, *, force: bool = False) -> Iterator[Folder]:
    """A folder in which to build the bundle `target`, removed on exit unless it was finished.

    The remains of an earlier, killed run are removed; the files of a concurrent run are left alone. A bundle that is
    replaced stays in place until the new one is complete and on the disk.

    Args:
        target: where the bundle will be.
        force: whether to replace an existing bundle.

    Raises:
        BundleError: the target exists, or cannot be written.
    """
    target = Path(os.path.abspath(target))  # noqa: PTH100  links are not followed
    with _write_errors(target):
        if os.path.lexists(target):
            if not force:
                raise _taken(target)
            _check_may_go(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        with drafting(target, "ship") as made:
            made.mkdir()
            yield Folder(made, target, force)


def _check_may_go(target: Path) -> None:
    """Check that `target` is a bundle or an empty folder: nothing else is ever replaced.

    Raises:
        BundleError: it is something else, or holds a file that does not belong to the bundle.
    """
    if target.is_symlink() or not target.is_dir():
        raise _stays(target)
    if not any(target.iterdir()):
        return
    listed = _listed_files(target)
    if listed is None:
        raise _stays(target)
    for path in sorted(target.rglob("*")):
        name = path.relative_to(target).as_posix()
        if path.is_symlink() or (not path.is_dir() and name not in listed):
            msg = (
                f"{target} holds {name}, which does not belong to the bundle there; --force will not remove it. Move "
                "it away, or pass another place with -o"
            )
            raise BundleError(msg)


def _listed_files(folder: Path) -> set[str] | None:
    """The files of the bundle in `folder`; None if it holds no bundle of this or an older format."""
    own = {FILE_NAME, DIGEST_NAME}
    try:
        text = _small(folder / FILE_NAME)
        with contextlib.suppress(BundleError):
            return own | set(read_manifest(text).files)
        # If an older opwright wrote the bundle, its digest must match.
        if _small(folder / DIGEST_NAME).decode() == _digest_line(text):
            return own | set(json.loads(text)["files"])
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        pass
    return None


def _small(path: Path) -> bytes:
    if not path.is_file() or path.is_symlink() or path.stat().st_size > MANIFEST_BYTES:
        raise ValueError
    return path.read_bytes()


def _digest_line(text: bytes) -> str:
    return f"{hashlib.sha256(text).hexdigest()}  {FILE_NAME}\n"


def _facts(folder: Path) -> dict[str, FileFacts]:
    facts = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            msg = f"{path} is not a regular file: a bundle cannot contain links"
            raise BundleError(msg)
        if path.is_file():
            name = path.relative_to(folder).as_posix()
            check_path(name)
            facts[name] = FileFacts(path.stat().st_size, _digest(path))
    return facts


def _checked_text(manifest: Manifest) -> bytes:
    try:
        text = manifest.to_json().encode()
    except ValueError as error:  # a number or a character that JSON in UTF-8 cannot represent
        msg = f"the manifest cannot be written: {error}"
        raise BundleError(msg) from error
    try:
        read_manifest(text)
    except BundleError as error:
        msg = f"the bundle was not written, because a host would reject it: {error}"
        raise BundleError(msg) from error
    return text


def _digest(path: Path) -> str:
    hasher = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(_AT_ONCE):
            hasher.update(part)
    return hasher.hexdigest()


def _taken(target: Path) -> BundleError:
    return BundleError(f"{target} already exists: pass another place with -o, or replace it with --force")


def _stays(target: Path) -> BundleError:
    return BundleError(f"{target} exists and is not a bundle; --force will not replace it. Pass another place with -o")


@contextlib.contextmanager
def _write_errors(target: Path) -> Iterator[None]:
    try:
        yield
    except CacheError:
        raise  # its message already names the full disk
    except Exception as error:
        reason = full_disk(error, [target.parent, Path(tempfile.gettempdir())])
        if reason is None and isinstance(error, OSError) and _concerns(error, target):
            reason = f"{error.strerror or error} ({error.filename})"
        if reason is None:
            raise
        msg = f"the bundle {target} cannot be written: {reason}"
        raise BundleError(msg) from error


def _concerns(error: OSError, target: Path) -> bool:
    """Whether `error` is about a folder on the path to `target`, or about a file next to it."""
    path = Path(os.fsdecode(error.filename or target))
    return target.is_relative_to(path) or path.is_relative_to(target.parent)
