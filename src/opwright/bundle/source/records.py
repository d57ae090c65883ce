"""Reads and writes PyTorch's archives record by record, and accepts only archives that every reader reads alike."""

from __future__ import annotations

import contextlib
import re
import stat
import zipfile
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from opwright.storage.deferred import deferring_errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

# PyTorch compresses only source text and data for debuggers: more than this is meant to fill the memory.
_MOST_UNPACKED = 2**28
# Names of files and folders that mean the same on every system.
_NAME = re.compile(r"[^\\:*?\"<>|\x00-\x1f\x7f]+")
_END, _ENTRY = b"PK\x05\x06", b"PK\x03\x04"
_END_LENGTH = 22
_ENCRYPTED = 0x1


class Records(NamedTuple):
    """The records of an open archive.

    Attributes:
        archive: the zip.
        entries: its entries, keyed by their names inside the archive's only folder.
    """

    archive: zipfile.ZipFile
    entries: dict[str, zipfile.ZipInfo]

    def read(self, name: str) -> bytes:
        """Read the contents of a record.

        Raises:
            BadZipFile: there is no such record, or it is damaged.
        """
        if name not in self.entries:
            msg = f"it has no {name}"
            raise zipfile.BadZipFile(msg)
        try:
            return self.archive.read(self.entries[name])
        except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError) as error:
            msg = f"{name} inside it is damaged ({error})"
            raise zipfile.BadZipFile(msg) from error


@contextlib.contextmanager
def open_records(path: Path) -> Iterator[Records]:
    """Open the archive at `path`.

    Raises:
        ValueError: PyTorch does not write such archives, and readers could find different contents in it.
        BadZipFile: the archive is damaged.
        OSError: the file cannot be read.
    """
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(path.open("rb"))
        size = file.seek(0, 2)
        file.seek(0)
        begin = file.read(len(_ENTRY))
        file.seek(max(0, size - _END_LENGTH))
        end = file.read()
        if begin != _ENTRY or not end.startswith(_END) or not end.endswith(b"\0\0"):
            msg = "it is not an archive that PyTorch wrote, or there is data before or after the archive"
            raise ValueError(msg)
        try:
            archive = stack.enter_context(zipfile.ZipFile(file))
        except (NotImplementedError, ValueError) as error:
            msg = f"its archive is damaged ({error})"
            raise zipfile.BadZipFile(msg) from error
        yield Records(archive, _entries(archive.infolist(), size))


def _entries(infos: list[zipfile.ZipInfo], size: int) -> dict[str, zipfile.ZipInfo]:
    entries: dict[str, zipfile.ZipInfo] = {}
    folders = set()
    for info in infos:
        folder, slash, name = info.orig_filename.partition("/")
        folders.add(folder)
        if not slash or not all(_is_plain(part) for part in (folder, *name.split("/"))):
            msg = f"its archive has an entry named {info.orig_filename!r:.100}"
            raise ValueError(msg)
        if name in entries:
            msg = f"its archive has two entries named {name}"
            raise ValueError(msg)
        if stat.S_IFMT(info.external_attr >> 16) not in {0, stat.S_IFREG}:
            msg = f"{name} inside its archive is a link or something else that is not a file"
            raise ValueError(msg)
        if info.flag_bits & _ENCRYPTED or info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
            msg = f"{name} inside its archive is encrypted, or compressed with a method that PyTorch never uses"
            raise ValueError(msg)
        entries[name] = info
    packed = [info for info in infos if info.compress_type == zipfile.ZIP_DEFLATED]
    stored = [info for info in infos if info.compress_type == zipfile.ZIP_STORED]
    if len(folders) != 1 or any(info.compress_size != info.file_size for info in stored):
        msg = "its archive is damaged"
        raise ValueError(msg)
    if sum(info.compress_size for info in infos) > size or sum(info.file_size for info in packed) > _MOST_UNPACKED:
        msg = "its archive would unpack to much more than PyTorch writes"
        raise ValueError(msg)
    return entries


def _is_plain(part: str) -> bool:
    return part not in {"", ".", ".."} and _NAME.fullmatch(part) is not None


def write_records(path: Path, records: Iterable[tuple[str, bytes]], version: int) -> None:
    """Write an archive.

    Args:
        path: the file.
        records: the names and contents.
        version: the version of PyTorch's file format.

    Raises:
        OSError: the file cannot be written.
    """
    with deferring_errors(path) as file:
        writer: Any = torch._C.PyTorchFileWriter(file)
        writer.set_min_version(version)
        for name, data in records:
            writer.write_record(name, data, len(data))
        writer.write_end_of_file()
