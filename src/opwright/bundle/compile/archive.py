"""Writes PyTorch's archives once more: without what varies from run to run, and what nobody needs to run them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from pathlib import Path

# How often this process has seen a class of that name before.
_MANGLED = re.compile(rb"___torch_mangle_\d+")
# The writer makes its own.
_OF_THE_WRITER = frozenset({"version", ".data/version", ".data/serialization_id"})
# The author's source text and its folder; the text and the commands that machine code was compiled from.
_TOLD_ABOUT_SOURCES = (".debug_pkl", ".cpp")


def write_again(path: Path) -> None:
    """Write the archive at `path` anew: the same bytes for the same model, whatever this process did before."""
    reader: Any = torch._C.PyTorchFileReader(str(path))
    numbers: dict[bytes, int] = {}

    def counted(found: re.Match[bytes]) -> bytes:
        return b"___torch_mangle_%d" % numbers.setdefault(found[0], len(numbers))

    records = []
    for name in sorted(reader.get_all_records()):
        if name not in _OF_THE_WRITER and not name.endswith(_TOLD_ABOUT_SOURCES):
            data = reader.get_record(name)
            if name.startswith("code/") or name.endswith(".pkl"):
                data = _MANGLED.sub(counted, data)
            records.append((_MANGLED.sub(counted, name.encode()).decode(), data))
    version = reader.get_record("version") if reader.has_record("version") else reader.get_record(".data/version")
    del reader
    writer = torch._C.PyTorchFileWriter(str(path))
    writer.set_min_version(int(version))
    for name, data in records:
        writer.write_record(name, data, len(data))
    writer.write_end_of_file()
