"""A file whose write errors are raised at its end, for writers in C++ that end the process where a write fails."""

from __future__ import annotations

import contextlib
import io
from typing import IO, TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from typing_extensions import Buffer


class _DeferringFile(io.BufferedIOBase):
    """Takes everything; what comes after an error, or after the end, goes nowhere."""

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
    """A new file at `path`, open for writing, that takes everything.

    A writer that is left by an exception writes once more when it is destroyed, which may be after the end of this.

    Raises:
        OSError: at the end, the first error of all writes; at the beginning, that the file cannot be made.
    """
    with path.open("wb") as file:
        deferring = _DeferringFile(file)
        try:
            yield cast("IO[bytes]", deferring)
        finally:
            deferring.takes = False
        if deferring.error is not None:
            # What the file still holds would fail again when it is closed.
            file.raw.close()
            raise deferring.error
