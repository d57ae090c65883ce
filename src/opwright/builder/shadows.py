"""Finds the absent files that a compiler or a linker would have read instead of those that it read.

If such a file appears later, the next build must read it, although no file that was read has changed. A missing folder,
written with a trailing slash, represents all files in it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from opwright.builder.includes import Asked, asked_for, assembled
from opwright.builder.search import header_search, library_search
from opwright.cache.records import names_in, read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from opwright.builder.ninja import Unit


@dataclass(frozen=True)
class Lookups:
    """What the compilation of a unit looked for.

    Attributes:
        absent: the names of absent files.
        unread: the first files for included names that were not read, as in code for other systems; a new one may not
            have existed yet when the compiler looked.
        further: files that count as read: those that assembly code embeds, and those that `__has_include` finds.
        is_complete: whether all such names are known.
    """

    absent: frozenset[str]
    unread: frozenset[str]
    further: frozenset[Path]
    is_complete: bool


def header_lookups(unit: Unit, read: Sequence[Path], work: Path) -> Lookups:
    """What the compilation of `unit` in the folder `work` looked for; it read the files `read`.

    Raises:
        BuildError: the compiler does not report its search path.
    """
    search = header_search(unit.command, work, cuda=unit.source.suffix == ".cu")
    asked = {Asked(name, None) for name in search.forced}
    embedded: list[str | None] = []
    for path in read:
        text = read_bytes(path) or b""
        asked |= asked_for(text, path)
        embedded += assembled(text)
    # Names that are macros do not appear in the text, but the files that they expand to are known.
    asked |= {Asked(name, None) for path in read for name in _names(str(path), search.bracketed)}
    folders = _Folders(read)
    absent, unread, further = {f"{folder}/" for folder in search.missing}, set[str](), set[Path]()
    everywhere = [*search.quoted, *search.bracketed]
    for one in asked:
        if one.beside is not None:
            places = [one.beside, *everywhere]
        else:
            places = everywhere if one.name in search.forced else list(search.bracketed)
        missed, found = folders.look(places, one)
        absent.update(missed)
        if one.is_question:
            further.update(map(Path, found))
        else:
            unread.update(found)
    files = [_assembled_file(name, search.bracketed) for name in embedded]
    further.update(path for path in files if path is not None)
    return Lookups(frozenset(absent), frozenset(unread), frozenset(further), None not in files)


def are_shadowed(read: Iterable[str], unit: Unit, folders: Iterable[Path], work: Path) -> bool:
    """Whether `unit`, in the folder `work`, would read another header from one of `folders` instead of one of `read`.

    Raises:
        BuildError: the compiler does not report its search path.
    """
    search = header_search(unit.command, work, cuda=False)
    known = _Folders(())
    names = {name for path in read for name in _names(path, search.bracketed)}
    return any(known.missing(str(folder), name) is None for folder in folders for name in names)


def library_shadows(linker: Sequence[str], flags: Sequence[str], read: Iterable[str]) -> set[str]:
    """The absent files that would hide a library of `read`: in an earlier folder, or a shared one next to it.

    Args:
        linker: the program that links, with its first words.
        flags: what follows the objects.
        read: the files that it read.

    Raises:
        BuildError: the compiler does not report its search path.
    """
    searched = [os.path.realpath(folder) for folder in library_search(linker, flags)]
    folders = _Folders(())
    absent = set[str | None]()
    for path in read:
        above, _, base = path.rpartition("/")
        folder = os.path.realpath(above)
        if folder in searched and base.startswith("lib"):
            names = [f"{Path(base).stem}{suffix}" for suffix in (".so", ".a")]
            earlier = searched[: searched.index(folder)]
            absent.update(folders.missing(place, name) for place in earlier for name in names)
            if base.endswith(".a"):
                absent.add(folders.missing(folder, names[0]))
    return {name for name in absent if name is not None}


class _Folders:
    """Looks for names in folders, and caches their contents."""

    def __init__(self, read: Iterable[Path]) -> None:
        self._read = frozenset(map(str, read))
        self._is_file: dict[str, bool] = {}
        self._names: dict[str, frozenset[str] | None] = {}

    def look(self, places: Iterable[str], asked: Asked) -> tuple[set[str], set[str]]:
        """The absent names before the first file (for `is_next`, the last), and the files that were not read."""
        before, since, unread = set[str](), set[str](), set[str]()
        for place in places:
            missing = self.missing(place, asked.name)
            if missing is not None:
                since.add(missing)
                continue
            before |= since
            since.clear()
            if f"{place}/{asked.name}" not in self._read:
                unread.add(f"{place}/{asked.name}")
            if not asked.is_next:
                return before, unread
        return before or since, unread

    def missing(self, folder: str, name: str) -> str | None:
        """The file `name` in `folder`, or the first folder on the way to it, if it is absent."""
        path = f"{folder}/{name}"
        if path in self._read:
            return None
        *way, base = name.split("/")
        for part in way:
            names = self._inside(folder)
            if names is None:
                return f"{folder}/"
            folder = f"{folder}/{part}"
            if part not in names and part not in {"", ".", ".."}:
                return f"{folder}/"
        names = self._inside(folder)
        if names is None:
            return f"{folder}/"
        if base not in names:
            return path
        if path not in self._is_file:
            self._is_file[path] = Path(path).is_file()
        return None if self._is_file[path] else path

    def _inside(self, folder: str) -> frozenset[str] | None:
        if folder not in self._names:
            try:
                self._names[folder] = names_in(folder)
            except OSError:
                self._names[folder] = None
        return self._names[folder]


def _names(path: str, folders: Sequence[str]) -> Iterator[str]:
    """The names of `path` relative to those of `folders` that contain it."""
    yield from (path[len(folder) + 1 :] for folder in folders if path.startswith(f"{folder}/"))


def _assembled_file(name: str | None, folders: Sequence[str]) -> Path | None:
    """The file that assembly code embeds as `name`; None if it is unknown."""
    places = (Path(folder, name) for folder in ("", *folders)) if name else iter(())
    return next((place for place in places if place.is_absolute() and place.is_file()), None)
