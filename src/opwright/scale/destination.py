"""Where the results of a map go: a folder, or any URL that fsspec knows. Files appear there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
import uuid
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from opwright.errors import MapError
from opwright.storage.draft import put

if TYPE_CHECKING:
    from collections.abc import Iterator

# Readers of tables skip names that begin with an underscore.
PRIVATE = "_opwright"
_DRAFTS = f"{PRIVATE}/drafts"


def is_url(text: str) -> bool:
    """Whether `text` is a URL for fsspec, such as `s3://bucket/folder`, and not a path."""
    return "://" in text


class Destination:
    """A folder for results.

    Args:
        text: its path, or a URL for fsspec.

    Raises:
        MapError: no file system is installed for the URL.
    """

    def __init__(self, text: str) -> None:
        self.text = text.rstrip("/") or "/"
        self._folder = None if is_url(text) else Path(text).absolute()
        if self._folder is None:
            self._remote, self._root = file_system(self.text)

    def __str__(self) -> str:
        return self.text

    @property
    def folder(self) -> Path | None:
        """The folder as a path; None for a URL."""
        return self._folder

    def __reduce__(self) -> tuple[type[Destination], tuple[str]]:
        return Destination, (self.text if self._folder is None else str(self._folder),)

    def names(self) -> list[str]:
        """The names of the files at the top of the folder, in no order; none if it does not exist."""
        if self._folder is not None:
            with contextlib.suppress(FileNotFoundError):
                return [entry.name for entry in os.scandir(self._folder)]
            return []
        with contextlib.suppress(FileNotFoundError):
            self._remote.invalidate_cache(self._root)
            return [path.rsplit("/", 1)[1] for path in self._remote.ls(self._root, detail=False)]
        return []

    @contextlib.contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """The file `name`, open to be read from any place in it.

        Raises:
            FileNotFoundError: it does not exist.
        """
        with cast(
            "IO[bytes]", (self._folder / name).open("rb") if self._folder is not None else self._at(name)
        ) as file:
            yield file

    def read(self, name: str) -> bytes | None:
        """What the file `name` holds; None if it does not exist."""
        with contextlib.suppress(FileNotFoundError), self.open(name) as file:
            return file.read()
        return None

    @contextlib.contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        """A local path at which to write what becomes the file `name` at the end, unless an exception is raised."""
        if self._folder is None:
            with tempfile.TemporaryDirectory(prefix="opwright-map-") as folder:
                draft = Path(folder) / "draft"
                yield draft
                self._remote.put_file(str(draft), f"{self._root}/{name}")
            return
        drafts = self._folder / _DRAFTS
        drafts.mkdir(parents=True, exist_ok=True)
        draft = drafts / f"{Path(name).name}.{uuid.uuid4().hex}"
        try:
            yield draft
            put(draft, self._folder / name)
        finally:
            draft.unlink(missing_ok=True)

    def remove_drafts(self) -> None:
        """Remove what killed processes left behind. Only one driver at a time may do so."""
        if self._folder is not None and (drafts := self._folder / _DRAFTS).is_dir():
            for left in drafts.iterdir():
                left.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # a worker of a driver that was killed is still at work
                drafts.rmdir()

    def _at(self, name: str) -> Any:
        return self._remote.open(f"{self._root}/{name}", "rb")


def file_system(url: str) -> tuple[Any, str]:
    """The file system of fsspec for a URL, and the path there.

    Raises:
        MapError: it is not installed, or does not know the URL.
    """
    import fsspec

    try:
        files, root = fsspec.core.url_to_fs(url)
    except (ImportError, ValueError) as error:
        msg = f"{url} cannot be used: {error}"
        raise MapError(msg) from error
    return files, str(root)
