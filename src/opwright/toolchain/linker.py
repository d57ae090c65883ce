"""Finds a linker that is faster than the compiler's own."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# By the name that -fuse-ld takes, the program.
_FAST = {"mold": "ld.mold", "lld": "ld.lld"}


@dataclass(frozen=True)
class Linker:
    """A linker on this machine.

    Attributes:
        name: what `-fuse-ld` calls it.
        path: the program.
    """

    name: str
    path: Path

    @property
    def flag(self) -> str:
        """What makes the compiler link with it."""
        return f"-fuse-ld={self.name}"

    @property
    def identity(self) -> list[str]:
        """What identifies it in cache keys: an upgrade changes its size or its time."""
        status = self.path.stat()
        return [str(self.path), str(status.st_size), str(status.st_mtime_ns)]


def find_fast_linker(words: Iterable[str], authors: Iterable[str]) -> Linker | None:
    """The linker mold or lld, if it is on the PATH.

    Args:
        words: the command line that links; None is returned if it names a linker itself.
        authors: what the author adds to it; None is returned if the linker itself gets any of it, since linkers differ
            in what they make of flags.
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
