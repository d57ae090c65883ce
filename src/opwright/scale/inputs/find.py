"""Finds the inputs that the arguments of a map name, in a defined order, one by one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from opwright.errors import MapError
from opwright.scale.inputs.item import Item
from opwright.scale.inputs.lists import LIST_ENDINGS, items_of_list
from opwright.scale.inputs.tables import TABLE_ENDING, items_of_table
from opwright.scale.inputs.tree import LocalTree, RemoteTree, files_below, files_of_pattern, has_pattern
from opwright.scale.urls import file_system, is_url, telling

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# The files of a folder that become inputs: those that a host reads or that have rows. A named file is always an input.
ENDINGS = (".jpg", ".jpeg", ".png", ".npy", ".npz", TABLE_ENDING)


def find_items(arguments: Iterable[str], columns: tuple[str, ...]) -> Iterator[Item]:
    """Yield the inputs that the arguments name, in the order of the arguments.

    Folders and patterns yield their files sorted by name, byte by byte; the files of a subfolder come at the place of
    its name. Hidden files in them are skipped, and so are folders with the results of maps.

    Args:
        arguments: paths, patterns or URLs.
        columns: the columns that a table must have, one for each input of the model.

    Raises:
        MapError: an argument names nothing, or a list or a table is not valid.
    """
    for argument in arguments:
        yield from _items(argument, columns)


def _items(argument: str, columns: tuple[str, ...]) -> Iterator[Item]:
    found = _remote_paths(argument) if is_url(argument) else _local_paths(argument)
    is_empty = True
    for path, was_named in found:
        is_empty = False
        yield from _items_of_file(path, columns, was_named=was_named)
    if is_empty:
        msg = (
            f"{argument} has no inputs: expected files with the endings {', '.join(ENDINGS)}. Pass other files one by "
            "one, or in a list"
        )
        raise MapError(msg)


def _items_of_file(path: str, columns: tuple[str, ...], *, was_named: bool) -> Iterator[Item]:
    ending = os.path.splitext(path)[1].lower()
    if ending == TABLE_ENDING:
        yield from items_of_table(path, columns)
    elif was_named and ending in LIST_ENDINGS:
        yield from items_of_list(path)
    else:
        yield Item(path)


def _local_paths(argument: str) -> Iterator[tuple[str, bool]]:
    """Yield paths, each with whether the argument names it directly."""
    if not argument:
        msg = "an input is an empty string: expected a file, a folder, or a pattern such as 'photos/*.jpg'"
        raise MapError(msg)
    path = Path(argument)
    try:
        if path.is_dir():
            yield from ((found, False) for found in files_below(LocalTree(), argument, ENDINGS))
        elif os.path.lexists(path) or not has_pattern(argument):
            path.lstat()
            yield argument, True
        else:
            yield from ((found, False) for found in files_of_pattern(LocalTree(), argument))
    except FileNotFoundError as error:
        msg = f"{argument} does not exist: expected a file, a folder, or a pattern such as 'photos/*.jpg'"
        raise MapError(msg) from error
    except OSError as error:
        msg = f"{argument} cannot be listed: {error.strerror}"
        raise MapError(msg) from error


def _remote_paths(argument: str) -> Iterator[tuple[str, bool]]:
    files, root = file_system(argument)
    tree = RemoteTree(files)
    with telling(argument, "listed"):
        if has_pattern(root):
            yield from ((files.unstrip_protocol(found), False) for found in files_of_pattern(tree, root))
        elif files.isdir(root):
            yield from ((files.unstrip_protocol(found), False) for found in files_below(tree, root, ENDINGS))
        elif files.exists(root):
            yield argument, True
        else:
            msg = f"{argument} does not exist: expected a file, a folder or a pattern"
            raise MapError(msg)
