"""Loads inputs into rows for a host: as paths, or as bytes if the host cannot read a file itself."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections import deque
from concurrent.futures import Future, wait
from functools import partial
from typing import TYPE_CHECKING

from opwright.errors import MapError, OpwrightError
from opwright.report.format import printable
from opwright.scale.daemon import in_daemon_thread
from opwright.scale.inputs.tables import TableReader
from opwright.scale.rows import Failure
from opwright.scale.stopped import StoppedError
from opwright.scale.urls import file_system, is_url, reason_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from opwright.scale.facts.bundle_facts import BundleFacts
    from opwright.scale.inputs.item import Item
    from opwright.scale.rows import Row

# Reading remote files is mostly waiting, so several are read at a time.
_READ_AHEAD = 16
# Errors that concern only one input; other errors may be temporary.
_OF_THIS_FILE = (FileNotFoundError, IsADirectoryError, NotADirectoryError)
_POLL_S = 0.5
_PAUSES_S = (0.5, 1.0, 2.0, 4.0)


class Loader:
    """Builds rows from inputs.

    Args:
        facts: the facts about the bundle.
        folder: the folder that relative paths start from.
        columns: the column of each input in tables, keyed by the input's name, where the two names differ.
    """

    def __init__(self, facts: BundleFacts, folder: Path, columns: Mapping[str, str] | None = None) -> None:
        self._facts = facts
        self._folder = folder
        self._tables = TableReader(facts.inputs, columns)
        self._stopped = threading.Event()
        self._readable: str | None = None  # the last remote file that was read

    def rows(self, items: Iterable[Item]) -> Iterator[Row | Failure]:
        """Yield the row of each input, or why it has none.

        Raises:
            MapError: a table or a remote file cannot be read for a reason unrelated to the input.
        """
        return self.filled(map(self._row, items))

    def filled(self, rows: Iterable[Row | Failure]) -> Iterator[Row | Failure]:
        """Yield each row with bytes instead of paths that the host cannot read, or why the row cannot be read.

        Raises:
            MapError: a remote file cannot be read for a reason unrelated to the row.
        """
        ahead: deque[Row | Failure | Future[Row | Failure]] = deque()
        for row in rows:
            ahead.append(self._filled(row))
            while ahead and (len(ahead) > _READ_AHEAD or not isinstance(ahead[0], Future)):
                yield self._settled(ahead.popleft())
        yield from map(self._settled, ahead)

    def close(self) -> None:
        """Stop waiting for reads, from any thread: `rows` then raises StoppedError."""
        self._stopped.set()

    def _settled(self, made: Row | Failure | Future[Row | Failure]) -> Row | Failure:
        if not isinstance(made, Future):
            return made
        while not wait([made], _POLL_S).done:
            if self._stopped.is_set():
                raise StoppedError
        return made.result()

    def _row(self, item: Item) -> Row | Failure:
        if item.table is not None and item.row is not None:
            table = item.table if is_url(item.table) else os.path.join(self._folder, item.table)
            try:
                return self._tables.row(table, item.row)
            except ValueError as error:
                return Failure("input_unreadable", f"{item.input}: {error}")
        if item.files is not None:
            values: Row = json.loads(item.files)
            return values
        return {"" if item.input.endswith(".npz") else self._facts.inputs[0].name: item.input}

    def _filled(self, row: Row | Failure) -> Row | Failure | Future[Row | Failure]:
        if isinstance(row, Failure):
            return row
        if any(isinstance(value, str) and not _host_can_read(value) for value in row.values()):
            # A server may never answer.
            return in_daemon_thread(partial(self._with_bytes, row), name="opwright-read")
        return row

    def _with_bytes(self, values: Row) -> Row | Failure:
        found: dict[str, str | bytes] = {}
        for name, value in values.items():
            if isinstance(value, bytes) or _host_can_read(value):
                found[name] = value
                continue
            read = self._read_remote(value) if is_url(value) else _read_local(value, self._folder)
            if isinstance(read, Failure):
                return read
            found[name] = read
        return found

    def _read_remote(self, url: str) -> bytes | Failure:
        reason = ""
        for pause_s in _PAUSES_S:
            try:
                files, root = file_system(url)
                read = bytes(files.cat_file(root))
            except _OF_THIS_FILE as error:
                return _unreadable(url, error)
            except OpwrightError:
                raise
            except Exception as error:
                if isinstance(error, PermissionError) and self._can_still_read(url):
                    return _unreadable(url, error)
                reason = reason_of(error)
                if self._stopped.wait(pause_s):
                    raise StoppedError from error
            else:
                self._readable = url
                return read
        msg = f"{url} cannot be read: {reason}. Resume the map when its file system responds again"
        raise MapError(msg)

    def _can_still_read(self, url: str) -> bool:
        """Whether another file can be read, which means that credentials are valid and only `url` is denied."""
        if self._readable is None or self._readable == url:
            return False
        with contextlib.suppress(Exception):  # each file system raises its own
            files, root = file_system(self._readable)
            files.cat_file(root, start=0, end=1)
            return True
        return False


def _host_can_read(path: str) -> bool:
    """Whether the value is a local path that JSON can hold."""
    return not is_url(path) and path.isprintable() and _is_utf8(path)


def _is_utf8(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _read_local(path: str, folder: Path) -> bytes | Failure:
    try:
        with open(os.path.join(folder, path), "rb") as file:
            return file.read()
    except (OSError, ValueError) as error:  # a name may contain a NUL
        return _unreadable(path, error)


def _unreadable(path: str, error: Exception) -> Failure:
    name = printable(os.fsencode(path).decode(errors="backslashreplace")).replace("\n", "\\n").replace("\t", "\\t")
    return Failure("input_unreadable", f"the input file {name} cannot be read: {reason_of(error)}")
