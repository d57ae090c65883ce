"""Finds the names under which a compiler or a linker looked in vain before it found what it read.

A file that appears under such a name later is read instead, although nothing that was read has changed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path


def header_shadows(command: Sequence[str], source: Path, read: Iterable[str]) -> set[str]:
    """The absent files that would hide a header of `read`: in the source's folder, or in an earlier one of `-I`.

    Args:
        command: the command line that compiled `source`.
        source: the file.
        read: the headers that it read.
    """
    folders = [str(source.parent), *_folders(command, "-I")]
    return _absent(hiding for path in read for hiding in _earlier(path, folders))


def library_shadows(flags: Sequence[str], read: Iterable[str]) -> set[str]:
    """The absent files that would hide a library of `read`: in an earlier folder of `-L`, or a shared one beside it.

    Args:
        flags: the linker's command line.
        read: the files that it read.
    """
    folders = _folders(flags, "-L")
    names = [stem + suffix for stem, _ in map(os.path.splitext, read) for suffix in (".so", ".a")]
    hiding = [earlier for name in names for earlier in _earlier(name, folders)]
    return _absent([*hiding, *(name for name in names if name.endswith(".so"))])


def _folders(command: Sequence[str], flag: str) -> list[str]:
    """The folders that `flag` names, in order, as `-Ifolder` or as two words."""
    pairs = zip(command, [*command[1:], ""], strict=True)
    named = [after if word == flag else word[len(flag) :] for word, after in pairs if word.startswith(flag)]
    return [os.path.normpath(folder) for folder in named if folder.startswith("/")]


def _earlier(path: str, folders: Sequence[str]) -> Iterator[str]:
    """The places of `path` in the folders that are searched before the one that it lies in."""
    for at, folder in enumerate(folders):
        if path.startswith(f"{folder}/"):
            yield from (earlier + path[len(folder) :] for earlier in folders[:at])


def _absent(names: Iterable[str]) -> set[str]:
    return {name for name in names if not os.path.lexists(name)}
