"""Finds what the arguments of a map name, in a stated order, one by one."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import TYPE_CHECKING

from opwright.errors import MapError
from opwright.scale.destination import file_system, is_url
from opwright.scale.inputs.in_order import in_order
from opwright.scale.inputs.lists import LIST_ENDINGS, items_of_list
from opwright.scale.inputs.tables import TABLE_ENDING, items_of_table
from opwright.scale.items import Item

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Of the files in a folder, those that a host reads or that have rows. A file that is named is always taken.
ENDINGS = (".jpg", ".jpeg", ".png", ".npy", ".npz", TABLE_ENDING)
_PATTERN = set("*?[")


def find_items(arguments: Iterable[str], names: tuple[str, ...]) -> Iterator[Item]:
    """Yields the inputs that the arguments name, in the order of the arguments.

    A folder and a pattern give their files sorted by name, byte by byte, the files of a folder in it at the place of
    its name. Hidden files in them are left out.

    Args:
        arguments: paths, patterns or URLs.
        names: the names of the model's inputs, which a table has as columns.

    Raises:
        MapError: an argument names nothing, or a list or a table is not valid.
    """
    for argument in arguments:
        yield from _items(argument, names)


def _items(argument: str, names: tuple[str, ...]) -> Iterator[Item]:
    found = _remote_paths(argument) if is_url(argument) else _local_paths(argument)
    is_empty = True
    for path, was_named in found:
        is_empty = False
        yield from _items_of_file(path, names, was_named=was_named)
    if is_empty:
        msg = (
            f"{argument} has no inputs: expected files that end in {', '.join(ENDINGS)}. Name other files one by one, "
            "or in a list"
        )
        raise MapError(msg)


def _items_of_file(path: str, names: tuple[str, ...], *, was_named: bool) -> Iterator[Item]:
    ending = os.path.splitext(path)[1].lower()
    if ending == TABLE_ENDING:
        yield from items_of_table(path, names)
    elif was_named and ending in LIST_ENDINGS:
        yield from items_of_list(path)
    else:
        yield Item(path)


def _local_paths(argument: str) -> Iterator[tuple[str, bool]]:
    """Yields paths, each with whether it was named itself."""
    path = Path(argument)
    if path.is_dir():
        yield from ((found, False) for found in _below(argument.rstrip("/") or "/"))
    elif os.path.lexists(path) or not _PATTERN & set(argument):
        if not os.path.lexists(path):
            msg = f"{argument} does not exist: expected a file, a folder, or a pattern such as 'photos/*.jpg'"
            raise MapError(msg)
        yield argument, True
    else:
        for match in in_order(glob.iglob(argument, recursive=True)):
            if os.path.isfile(match):
                yield match, False


def _below(folder: str) -> Iterator[str]:
    """Yields the files in a folder and in its folders."""
    for name in in_order(_names_in(folder)):
        path = f"{folder.rstrip('/')}/{name}"
        if _has_ending(name) and not os.path.isdir(path):
            yield path
        elif os.path.isdir(path) and not os.path.islink(path):
            yield from _below(path)


def _names_in(folder: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        yield from (entry.name for entry in entries if not entry.name.startswith("."))


def _has_ending(name: str) -> bool:
    return name.lower().endswith(ENDINGS)


def _remote_paths(argument: str) -> Iterator[tuple[str, bool]]:
    files, root = file_system(argument)
    try:
        if _PATTERN & set(root):
            for match in in_order(files.glob(root)):
                yield files.unstrip_protocol(match), False
        elif files.isdir(root):
            yield from (
                (files.unstrip_protocol(path), False) for path in in_order(files.find(root)) if _has_ending(path)
            )
        elif files.exists(root):
            yield argument, True
        else:
            msg = f"{argument} does not exist: expected a file, a folder or a pattern"
            raise MapError(msg)
    except OSError as error:
        msg = f"{argument} cannot be listed: {error}"
        raise MapError(msg) from error
