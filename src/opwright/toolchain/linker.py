"""Finds a linker that is faster than the compiler's own."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# The program for each name that -fuse-ld accepts.
_FAST = {"mold": "ld.mold", "lld": "ld.lld"}


@dataclass(frozen=True)
class Linker:
    """A linker on this machine.

    Attributes:
        name: its name for `-fuse-ld`.
        path: the program.
    """

    name: str
    path: Path

    @property
    def flag(self) -> str:
        """The compiler flag that selects it."""
        return f"-fuse-ld={self.name}"

    @property
    def identity(self) -> list[str]:
        """What identifies it in cache keys: an upgrade changes its size or modification time."""
        status = self.path.stat()
        return [str(self.path), str(status.st_size), str(status.st_mtime_ns)]


def find_fast_linker(words: Iterable[str], authors: Iterable[str]) -> Linker | None:
    """The linker mold or lld, if it is on the PATH.

    Args:
        words: the command line that links; None is returned if it already selects a linker.
        authors: the flags that the author adds to it; None is returned if any of them is for the linker itself, since
            linkers interpret flags differently.
    """
    given = [*words, *authors]
    if any(word.startswith(("-fuse-ld", "--ld-path")) for word in given):
        return None
    if any(word.startswith(("-Wl,", "-Xlinker", "-T")) for word in authors):
        return None
    for name, program in _FAST.items():
        if found := shutil.which(program):
            return Linker(name, Path(found).resolve())
    return None
