"""Rewrites PyTorch's archives without records that vary from run to run or that running the model does not need."""

from __future__ import annotations

import re
from typing import IO, TYPE_CHECKING, Any

import torch

from opwright.bundle.source.records import write_records

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# A counter of the classes with one name in this process.
_MANGLED = re.compile(rb"___torch_mangle_\d+")
# The writer creates these records itself.
_FROM_WRITER = frozenset({"version", ".data/version", ".data/serialization_id"})
# The author's source text, and the name of its folder.
_ABOUT_SOURCES = ".debug_pkl"
# The source of machine code. An empty file stays, because PyTorch 2.11 finds its neighbours by its name.
_SOURCE = ".cpp"


def write_again(saved: IO[bytes], path: Path) -> None:
    """Write the archive `saved` to `path`: the same model produces the same bytes, whatever this process did before.

    Raises:
        OSError: the file cannot be written.
    """
    saved.seek(0)
    reader: Any = torch._C.PyTorchFileReader(saved)
    numbers: dict[bytes, int] = {}

    def counted(found: re.Match[bytes]) -> bytes:
        return b"___torch_mangle_%d" % numbers.setdefault(found[0], len(numbers))

    version = reader.get_record("version") if reader.has_record("version") else reader.get_record(".data/version")

    def kept() -> Iterator[tuple[str, bytes]]:
        for name in sorted(reader.get_all_records()):
            if name not in _FROM_WRITER and not name.endswith(_ABOUT_SOURCES):
                data = b"" if name.endswith(_SOURCE) else reader.get_record(name)
                if name.startswith("code/") or name.endswith(".pkl"):
                    data = _MANGLED.sub(counted, data)
                yield _MANGLED.sub(counted, name.encode()).decode(), data

    write_records(path, kept(), int(version))
