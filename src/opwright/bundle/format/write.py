"""Writes the folder of a bundle: whole or not at all."""

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
        path: the hidden folder in which it is made; every file in it at the end belongs to the bundle.
        target: where the bundle will be.
        force: whether it may replace an existing bundle.
    """

    path: Path
    target: Path
    force: bool

    def finish(self, manifest: Manifest) -> Manifest:
        """Write the manifest of all files in the folder, read it back as a host does, and move the bundle into place.

        Args:
            manifest: all of it but `files`, which are those in the folder.

        Returns:
            The whole manifest.

        Raises:
            BundleError: it cannot be written, a host would refuse it, or a file's name cannot be in a bundle.
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
            # Looked at once more where nobody else writes: something else may have been put there in between.
            try:
                _check_may_go(self.path)
            except BundleError as late:
                exchange(self.path, self.target)
                raise _stays(self.target) from late
        flush(self.target.parent)


@contextlib.contextmanager
def writing(target: Path, *, force: bool = False) -> Iterator[Folder]:
    """A folder to make the bundle `target` in, removed at the end if it was not finished.

    What an earlier, killed run left is removed; what another run is writing now is left alone. A bundle that is
    replaced stands until the new one is complete and on the disk.

    Args:
        target: where the bundle will be.
        force: replace an existing bundle.

    Raises:
        BundleError: the target exists, or cannot be written.
    """
    target = Path(os.path.abspath(target))  # noqa: PTH100  a link is not followed
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
    """Check that `target` is a bundle, or an empty folder: nothing else is ever replaced.

    Raises:
        BundleError: it is something else, or holds a file that is not the bundle's.
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
                f"{target} holds {name}, which is not of the bundle there; --force will not remove it. Move it away, "
                "or name another place with -o"
            )
            raise BundleError(msg)


def _listed_files(folder: Path) -> set[str] | None:
    """The files of the bundle in `folder`; None if there is no bundle, not even of an older format."""
    own = {FILE_NAME, DIGEST_NAME}
    try:
        text = _small(folder / FILE_NAME)
        with contextlib.suppress(BundleError):
            return own | set(read_manifest(text).files)
        # An older opwright wrote it: then it is what its digest says.
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
            msg = f"{path} is not a regular file: a bundle holds no links"
            raise BundleError(msg)
        if path.is_file():
            name = path.relative_to(folder).as_posix()
            check_path(name)
            facts[name] = FileFacts(path.stat().st_size, _digest(path))
    return facts


def _checked_text(manifest: Manifest) -> bytes:
    try:
        text = manifest.to_json().encode()
    except ValueError as error:  # a number or a letter that JSON in UTF-8 does not have
        msg = f"the manifest cannot be written: {error}"
        raise BundleError(msg) from error
    try:
        read_manifest(text)
    except BundleError as error:
        msg = f"the bundle was not written, because a host would refuse it: {error}"
        raise BundleError(msg) from error
    return text


def _digest(path: Path) -> str:
    hasher = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(_AT_ONCE):
            hasher.update(part)
    return hasher.hexdigest()


def _taken(target: Path) -> BundleError:
    return BundleError(f"{target} already exists: name another place with -o, or replace it with --force")


def _stays(target: Path) -> BundleError:
    return BundleError(f"{target} exists and is not a bundle; --force will not replace it. Name another place with -o")


@contextlib.contextmanager
def _write_errors(target: Path) -> Iterator[None]:
    try:
        yield
    except CacheError:
        raise  # which says what is full
    except Exception as error:
        reason = full_disk(error, [target.parent, Path(tempfile.gettempdir())])
        if reason is None and isinstance(error, OSError) and _concerns(error, target):
            reason = f"{error.strerror or error} ({error.filename})"
        if reason is None:
            raise
        msg = f"the bundle {target} cannot be written: {reason}"
        raise BundleError(msg) from error


def _concerns(error: OSError, target: Path) -> bool:
    """Whether `error` is about a folder on the way to `target`, or about something beside it."""
    path = Path(os.fsdecode(error.filename or target))
    return target.is_relative_to(path) or path.is_relative_to(target.parent)
