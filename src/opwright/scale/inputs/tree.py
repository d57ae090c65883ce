"""Walks local or remote folders in a defined order, keeping the names of only one folder in memory at a time."""

from __future__ import annotations

import contextlib
import fnmatch
import os
import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from opwright.scale.inputs.in_order import in_order
from opwright.scale.layout import PRIVATE

if TYPE_CHECKING:
    from collections.abc import Iterator

# Appended to the names of folders, and of links to folders: no name contains it, and it does not change the order.
_FOLDER, _LINK = "\0", "\0@"
_EVERYWHERE = "**"
_PATTERN = set("*?[")


class Tree(Protocol):
    """A source of folders and files."""

    def names(self, folder: str) -> Iterator[str]:
        """Yield the names in a folder, marked as above. `folder` ends with a slash; empty is the current folder."""

    def is_file(self, path: str) -> bool:
        """Whether the path is a file."""


class LocalTree:
    """The folders of this machine. A link to a file is a file; pipes, sockets and devices are skipped."""

    def names(self, folder: str) -> Iterator[str]:
        """Yield the marked names in a folder."""
        with os.scandir(folder or ".") as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield entry.name + _FOLDER
                elif entry.is_file(follow_symlinks=False):
                    yield entry.name
                elif entry.is_symlink() and os.path.isdir(entry.path):
                    yield entry.name + _LINK
                elif entry.is_symlink() and (os.path.isfile(entry.path) or not os.path.exists(entry.path)):
                    yield entry.name  # a broken link is an input that fails

    def is_file(self, path: str) -> bool:
        """Whether the path is a file, or a link to one."""
        return os.path.isfile(path)


class RemoteTree:
    """The folders of an fsspec file system."""

    def __init__(self, files: Any) -> None:
        self._files = files

    def names(self, folder: str) -> Iterator[str]:
        """Yield the marked names in a folder."""
        here = folder.rstrip("/")
        for found in self._files.ls(here, detail=True):
            path = found["name"].rstrip("/")
            if path.lstrip("/") != here.lstrip("/"):  # some stores mark a folder with an empty file of its name
                yield path.rpartition("/")[2] + (_FOLDER if found["type"] == "directory" else "")

    def is_file(self, path: str) -> bool:
        """Whether the path is a file."""
        return bool(self._files.isfile(path))


def has_pattern(text: str) -> bool:
    """Whether `text` contains a wildcard."""
    return bool(_PATTERN & set(text))


def files_below(tree: Tree, folder: str, endings: tuple[str, ...]) -> Iterator[str]:
    """Yield the paths of the files in a folder and its subfolders that have one of the endings.

    Hidden files and folders with the results of a map are skipped; links to folders are not followed.
    """
    yield from _below(tree, folder.rstrip("/") + "/", endings, is_named=True)


def files_of_pattern(tree: Tree, pattern: str) -> Iterator[str]:
    """Yield the paths of the files that match, each once.

    As in a shell, a `*` matches neither a slash nor a dot at the start of a name; `**` matches any number of folders,
    except links to folders and folders with the results of a map.
    """
    parts = [
        part
        for before, part in zip(["", *pattern.split("/")], pattern.split("/"), strict=False)
        if not before == part == _EVERYWHERE
    ]
    named = next(place for place, part in enumerate(parts) if has_pattern(part))
    prefix = "".join(f"{part}/" for part in parts[:named])
    yield from _Pattern(tree, parts).files(prefix, frozenset({named}), is_named=True)


class _Names:
    """The names in a folder, and whether the folder has the results of a map."""

    def __init__(self, tree: Tree, folder: str) -> None:
        self._tree, self._folder = tree, folder
        self.are_results = False

    def __iter__(self) -> Iterator[str]:
        for name in self._tree.names(self._folder):
            if name == PRIVATE + _FOLDER:
                self.are_results = True
            else:
                yield name


def _below(tree: Tree, folder: str, endings: tuple[str, ...], *, is_named: bool) -> Iterator[str]:
    names = _Names(tree, folder)
    for marked in in_order(names):
        if names.are_results and not is_named:
            return
        name, _, link = marked.partition(_FOLDER)
        if name.startswith("."):
            continue
        if name == marked:
            if name.lower().endswith(endings):
                yield folder + name
        elif not link:
            yield from _below(tree, f"{folder}{name}/", endings, is_named=False)


class _Pattern:
    """A pattern, split at its slashes. A state is the part that the next name must match."""

    def __init__(self, tree: Tree, parts: list[str]) -> None:
        self._tree, self._parts = tree, parts

    @cached_property
    def _tests(self) -> list[re.Pattern[str]]:
        return [re.compile(fnmatch.translate(part)) for part in self._parts]

    def files(self, folder: str, states: frozenset[int], *, is_named: bool) -> Iterator[str]:
        """Yield the files under `folder` that match from these states on."""
        states |= {state + 1 for state in states if self._parts[state] == _EVERYWHERE and state + 1 < len(self._parts)}
        if len(states) == 1 and not has_pattern(part := self._parts[min(states)]):
            yield from self._files_at(folder + part, min(states) + 1)
            return
        names = _Names(self._tree, folder)
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # no match
            for marked in in_order(names):
                if names.are_results and not is_named and any(self._parts[state] == _EVERYWHERE for state in states):
                    return
                name, _, link = marked.partition(_FOLDER)
                after = frozenset(self._after(states, name, is_link=bool(link)))
                if name != marked:
                    if below := after - {len(self._parts)}:
                        yield from self.files(f"{folder}{name}/", below, is_named=False)
                elif len(self._parts) in after or self._ends_everywhere(after):
                    yield folder + name

    def _files_at(self, path: str, state: int) -> Iterator[str]:
        if state < len(self._parts):
            yield from self.files(f"{path}/", frozenset({state}), is_named=True)
        elif self._tree.is_file(path):
            yield path

    def _after(self, states: frozenset[int], name: str, *, is_link: bool) -> Iterator[int]:
        for state in states:
            part = self._parts[state]
            if part == _EVERYWHERE:
                if not is_link and not name.startswith("."):
                    yield state
            elif (part.startswith(".") or not name.startswith(".")) and self._tests[state].match(name):
                yield state + 1

    def _ends_everywhere(self, states: frozenset[int]) -> bool:
        last = len(self._parts) - 1
        return last in states and self._parts[last] == _EVERYWHERE
