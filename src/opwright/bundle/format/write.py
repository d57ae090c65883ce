"""Writes the folder of a bundle: whole or not at all."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import hashlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from opwright.bundle.format.manifest import DIGEST_NAME, FILE_NAME, FileFacts, Manifest
from opwright.bundle.format.names import check_path
from opwright.bundle.format.read import read_manifest
from opwright.errors import BundleError

if TYPE_CHECKING:
    from collections.abc import Iterator

_AT_ONCE = 2**20
_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE, of Linux
_LOCK = ".lock"


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
        with _write_errors(self.target):
            (self.path / FILE_NAME).write_bytes(text)
            (self.path / DIGEST_NAME).write_text(f"{hashlib.sha256(text).hexdigest()}  {FILE_NAME}\n")
            for path in [*self.path.rglob("*"), self.path]:
                _flush(path)
            self._put()
        return whole

    def _put(self) -> None:
        if not self.target.exists() and not self.target.is_symlink():
            self.path.rename(self.target)
        elif not self.force:
            raise _taken(self.target)
        else:
            _exchange(self.path, self.target)
            _remove(self.path)
        _flush(self.target.parent)


@contextlib.contextmanager
def writing(target: Path, *, force: bool = False) -> Iterator[Folder]:
    """A folder to make the bundle `target` in, removed at the end if it was not finished.

    What an earlier, killed run left is removed; what another run is writing now is left alone.

    Args:
        target: where the bundle will be.
        force: replace an existing bundle.

    Raises:
        BundleError: the target exists, or cannot be written.
    """
    target = Path(os.path.abspath(target))  # noqa: PTH100  a link is not followed
    if (target.exists() or target.is_symlink()) and not force:
        raise _taken(target)
    if target.exists() and not _may_go(target):
        msg = f"{target} exists and is not a bundle; --force will not replace it. Name another place with -o"
        raise BundleError(msg)
    prefix = f".{target.name}.ship-"
    with _write_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep(target.parent, prefix)
        holder = Path(tempfile.mkdtemp(prefix=prefix, dir=target.parent))
    try:
        with _write_errors(target):
            lock = os.open(holder / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC)
            # The system's own lock: it is released when the process ends, in whatever way.
            fcntl.flock(lock, fcntl.LOCK_EX)
            made = holder / target.name
            made.mkdir()
        try:
            yield Folder(made, target, force)
        finally:
            os.close(lock)
    finally:
        _remove(holder)


def _exchange(one: Path, other: Path) -> None:
    """Swap two folders in one step, so that there is a whole bundle at any moment."""
    swap = ctypes.CDLL(None, use_errno=True).renameat2
    if swap(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), str(other))


def _sweep(folder: Path, prefix: str) -> None:
    for left in folder.glob(f"{prefix}*"):
        try:
            lock = os.open(left / _LOCK, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue  # it has just been made, or we may not open it
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue  # its writer is still running
        else:
            _remove(left)
        finally:
            os.close(lock)


def _may_go(target: Path) -> bool:
    """Whether `target` is a bundle or an empty folder: nothing else is ever removed."""
    return target.is_dir() and not target.is_symlink() and ((target / FILE_NAME).is_file() or not any(target.iterdir()))


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


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def _taken(target: Path) -> BundleError:
    return BundleError(f"{target} already exists: name another place with -o, or replace it with --force")


@contextlib.contextmanager
def _write_errors(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        msg = f"the bundle {target} cannot be written: {error.strerror or error} ({error.filename})"
        raise BundleError(msg) from error
