"""Reads the operator namespaces that a shared object defines, without opening it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from opwright.errors import LoadError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# The symbols of the registration macros: opwright's, and PyTorch's two, whose static object has a mangled name with its
# length first, after its C++ namespaces. (Their static function is often inlined.)
_OURS = re.compile(r"^opwright_defines_(\w+)$")
_TORCHS = re.compile(r"^_Z(?:N\w*?)?L(\d+)((?:STABLE_)?TORCH_LIBRARY_static_init_)")


def defined_namespaces(path: Path) -> set[str]:
    """The namespaces that `path` defines, with `TORCH_LIBRARY` or an equivalent.

    Raises:
        LoadError: the file cannot be read, or is not an ELF file.
    """
    try:
        with path.open("rb") as file:
            return {found for name in _symbols(ELFFile(file)) if (found := _namespace(name))}
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror}"
        raise LoadError(msg) from error
    except (ELFError, ValueError, AssertionError) as error:
        msg = f"{path} is not a shared object: expected an ELF file, as `opwright build` makes one ({error})"
        raise LoadError(msg) from error


def _symbols(elf: ELFFile) -> Iterator[str]:
    for section in elf.iter_sections():
        if isinstance(section, SymbolTableSection):
            yield from (symbol.name for symbol in section.iter_symbols())


def _namespace(symbol: str) -> str | None:
    if ours := _OURS.match(symbol):
        return ours[1]
    if torchs := _TORCHS.match(symbol):
        # _ZL32TORCH_LIBRARY_static_init_my_ops: the 32 characters after the number are the name.
        name = symbol[torchs.start(2) : torchs.start(2) + int(torchs[1])]
        return name.removeprefix(torchs[2])
    return None
