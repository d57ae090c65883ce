"""Reads dependency files, in which compilers and linkers list the files that they read, in make's syntax."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# A blank in a name is escaped by a backslash, and backslashes before it are doubled. Other backslashes are literal.
_NAME = re.compile(rb"(?:(?<!\\)(?:\\\\)*\\[ \t]|[^ \t\r\n])+")
_BLANK = re.compile(rb"((?:\\\\)*)\\([ \t])")
_SPECIAL = re.compile(rb"\\([#:])|\$(\$)")


def read_depfile(depfile: Path, folder: Path) -> list[Path]:
    """The files that the target of `depfile` depends on, sorted, each once.

    Args:
        depfile: the file that the compiler or the linker wrote.
        folder: the folder that it ran in, to which names are relative.

    Raises:
        OSError: it cannot be read.
    """
    text = re.sub(rb"\\\r?\n", b" ", depfile.read_bytes())
    # A linker adds an empty rule for each file, on separate lines.
    _, _, listed = text.partition(b"\n")[0].partition(b": ")
    return sorted({folder / os.fsdecode(_plain(name)) for name in _NAME.findall(listed)})


def _plain(name: bytes) -> bytes:
    name = _BLANK.sub(lambda found: found[1][::2] + found[2], name)
    return _SPECIAL.sub(rb"\1\2", name)
