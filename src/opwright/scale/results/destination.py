"""The destination of a map's results: a folder, or any URL that fsspec supports. Files are written atomically."""

from __future__ import annotations

import contextlib
import os
import tempfile
import uuid
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from opwright.errors import MapError
from opwright.scale.layout import DRAFTS_NAME
from opwright.scale.urls import file_system, is_url, reason_of, telling
from opwright.storage.draft import put

if TYPE_CHECKING:
    from collections.abc import Iterator


class Destination:
    """A folder for results.

    Args:
        text: its path, or an fsspec URL.

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
        """The names of the files at the top of the folder, in any order; empty if it does not exist."""
        with contextlib.suppress(FileNotFoundError):
            if self._folder is not None:
                with telling(str(self), "listed"), os.scandir(self._folder) as entries:
                    return [entry.name for entry in entries]
            with telling(str(self), "listed"):
                self._remote.invalidate_cache(self._root)
                return [path.rsplit("/", 1)[1] for path in self._remote.ls(self._root, detail=False)]
        return []

    @contextlib.contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """Open the file `name` for reading, with random access.

        Raises:
            FileNotFoundError: the file does not exist.
        """
        if self._folder is not None:
            with (self._folder / name).open("rb") as file:
                yield file
            return
        with telling(f"{self}/{name}", "read"), self._remote.open(f"{self._root}/{name}", "rb") as remote:
            yield cast("IO[bytes]", remote)

    def read(self, name: str) -> bytes | None:
        """The contents of the file `name`; None if it does not exist.

        Raises:
            MapError: the file cannot be read.
        """
        with contextlib.suppress(FileNotFoundError), telling(f"{self}/{name}", "read"), self.open(name) as file:
            return file.read()
        return None

    @contextlib.contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        """A local path to write to, which becomes the file `name` on exit unless an exception is raised.

        Raises:
            MapError: the file cannot be written.
        """
        if self._folder is None:
            with tempfile.TemporaryDirectory(prefix="opwright-map-") as folder:
                draft = Path(folder) / "draft"
                yield draft
                with telling(f"{self}/{name}", "written"):
                    self._remote.put_file(str(draft), f"{self._root}/{name}")
            return
        drafts = self._folder / DRAFTS_NAME
        draft = drafts / f"{Path(name).name}.{uuid.uuid4().hex}"
        try:
            drafts.mkdir(parents=True, exist_ok=True)
            yield draft
            put(draft, self._folder / name)
        except OSError as error:
            msg = f"{self}/{name} cannot be written: {reason_of(error)}. Resume the map when it can be written"
            raise MapError(msg) from error
        finally:
            draft.unlink(missing_ok=True)

    def remove_drafts(self) -> None:
        """Remove the remains of killed processes. Only one driver at a time may do this."""
        if self._folder is not None and (drafts := self._folder / DRAFTS_NAME).is_dir():
            for left in drafts.iterdir():
                left.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # a worker of a killed driver is still running
                drafts.rmdir()
