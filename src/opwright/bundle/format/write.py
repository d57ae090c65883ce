"""Writes the folder of a bundle: whole or not at all."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import hashlib
import os
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from opwright.bundle.format.manifest import DIGEST_NAME, FILE_NAME, FileFacts, Manifest
from opwright.bundle.format.names import check_path
from opwright.errors import BundleError

if TYPE_CHECKING:
    from collections.abc import Iterator

_AT_ONCE = 2**20
_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE, of Linux
_LOCK = ".lock"


@dataclass(frozen=True)
class Folder:
    """A bundle under way.

    Attributes:
        path: the hidden folder in which it is made; whatever lies there at the end is in the bundle.
        target: where the bundle is to be.
        force: whether it may take the place of one that is there.
    """

    path: Path
    target: Path
    force: bool

    def finish(self, manifest: Manifest) -> Manifest:
        """Write the manifest of all files that are here, and put the bundle in its place.

        Args:
            manifest: what is to be said; its `files` are found here.

        Raises:
            BundleError: it cannot be written, or a file's name cannot be in a bundle.
        """
        whole = replace(manifest, files=_facts(self.path))
        text = whole.to_json().encode()
        with _said(self.target):
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
    """A folder to make the bundle `target` in, gone at the end if it was not finished.

    What an earlier run left that was killed is removed; what another run writes at this moment is left alone.

    Args:
        target: where the bundle is to be.
        force: take the place of what is there.

    Raises:
        BundleError: the place is taken, or cannot be written.
    """
    target = Path(os.path.abspath(target))  # noqa: PTH100  a link stays what it is
    if (target.exists() or target.is_symlink()) and not force:
        raise _taken(target)
    if target.exists() and not _may_go(target):
        msg = f"{target} is there and is no bundle: it is not replaced, by --force neither. Name another place"
        raise BundleError(msg)
    prefix = f".{target.name}.ship-"
    with _said(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep(target.parent, prefix)
        holder = Path(tempfile.mkdtemp(prefix=prefix, dir=target.parent))
    try:
        with _said(target):
            lock = os.open(holder / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC)
            # The system's own lock: it goes with the process, however that ends.
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
    """Let two folders change places in one step, so that there is a whole bundle at any moment."""
    swap = ctypes.CDLL(None, use_errno=True).renameat2
    if swap(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), str(other))


def _sweep(folder: Path, prefix: str) -> None:
    for left in folder.glob(f"{prefix}*"):
        try:
            lock = os.open(left / _LOCK, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue  # begun this very moment, or not ours to look into
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue  # its writer lives
        else:
            _remove(left)
        finally:
            os.close(lock)


def _may_go(target: Path) -> bool:
    """Whether something is a bundle, or an empty folder: nothing else is ever removed."""
    return target.is_dir() and not target.is_symlink() and ((target / FILE_NAME).is_file() or not any(target.iterdir()))


def _facts(folder: Path) -> dict[str, FileFacts]:
    facts = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            msg = f"{path} is no plain file: a bundle holds no links"
            raise BundleError(msg)
        if path.is_file():
            name = path.relative_to(folder).as_posix()
            check_path(name)
            facts[name] = FileFacts(path.stat().st_size, _digest(path))
    return facts


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
    return BundleError(f"{target} is there already: name another place with -o, or replace it with --force")


@contextlib.contextmanager
def _said(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        msg = f"the bundle {target} cannot be written: {error.strerror or error} ({error.filename})"
        raise BundleError(msg) from error
