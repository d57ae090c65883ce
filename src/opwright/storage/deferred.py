"""A file that raises write errors when it is closed, for C++ writers that end the process if a write fails."""

from __future__ import annotations

import contextlib
import io
from typing import IO, TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from typing_extensions import Buffer


class _DeferringFile(io.BufferedIOBase):
    """Accepts all writes, and discards those after an error or after the end."""

    def __init__(self, file: io.BufferedWriter) -> None:
        self._file = file
        self.takes = True
        self.error: OSError | None = None

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer, /) -> int:
        if self.takes:
            try:
                self._file.write(data)
            except OSError as error:
                self.error = error
                self.takes = False
        return memoryview(data).nbytes


@contextlib.contextmanager
def deferring_errors(path: Path) -> Iterator[IO[bytes]]:
    """A new file at `path`, open for writing, that accepts all writes.

    A writer that is left by an exception may write again in its destructor, after this context has ended.

    Raises:
        OSError: on entry, if the file cannot be created; on exit, the first error of all writes.
    """
    with path.open("wb") as file:
        deferring = _DeferringFile(file)
        try:
            yield cast("IO[bytes]", deferring)
        finally:
            deferring.takes = False
        if deferring.error is not None:
            # Closing the file normally would fail again on its buffered data.
            file.raw.close()
            raise deferring.error
