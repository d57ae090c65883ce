"""Rewrites PyTorch's archives without what varies from run to run and what running them does not need."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import torch

from opwright.bundle.source.records import write_records

if TYPE_CHECKING:
    from pathlib import Path

# A counter of the classes of one name that this process has seen.
_MANGLED = re.compile(rb"___torch_mangle_\d+")
# The writer makes these itself.
_FROM_WRITER = frozenset({"version", ".data/version", ".data/serialization_id"})
# The author's source text and its folder; the source and the commands that machine code was compiled from.
_ABOUT_SOURCES = (".debug_pkl", ".cpp")


def write_again(path: Path) -> None:
    """Rewrite the archive at `path`: the same bytes for the same model, whatever this process did before."""
    reader: Any = torch._C.PyTorchFileReader(str(path))
    numbers: dict[bytes, int] = {}

    def counted(found: re.Match[bytes]) -> bytes:
        return b"___torch_mangle_%d" % numbers.setdefault(found[0], len(numbers))

    records = []
    for name in sorted(reader.get_all_records()):
        if name not in _FROM_WRITER and not name.endswith(_ABOUT_SOURCES):
            data = reader.get_record(name)
            if name.startswith("code/") or name.endswith(".pkl"):
                data = _MANGLED.sub(counted, data)
            records.append((_MANGLED.sub(counted, name.encode()).decode(), data))
    version = reader.get_record("version") if reader.has_record("version") else reader.get_record(".data/version")
    del reader
    write_records(path, records, int(version))
