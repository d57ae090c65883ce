"""Reads lists of inputs: a path on each line, or a request in JSON."""

from __future__ import annotations

import contextlib
import json
import os
from typing import IO, TYPE_CHECKING, NamedTuple, cast

from opwright.errors import MapError
from opwright.scale.inputs.item import Item
from opwright.scale.urls import file_system, is_url, telling

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Request(NamedTuple):
    """A line of a list."""

    inputs: dict[str, str]


_PATHS, _REQUESTS = ".txt", ".jsonl"
LIST_ENDINGS = (_PATHS, _REQUESTS)


def items_of_list(path: str) -> Iterator[Item]:
    """Yield the inputs of a list, in order. Its paths are relative to its folder.

    Args:
        path: a `.txt` with a path on each line, or a `.jsonl` with lines such as {"inputs": {"image": "a.jpg"}}.

    Raises:
        MapError: the list cannot be read, or a line is not valid.
    """
    folder = path.rpartition("/")[0]
    is_requests = path.lower().endswith(_REQUESTS)
    try:
        with _open(path) as file:
            for number, line in enumerate(file, 1):
                text = os.fsdecode(line).strip()
                if text:
                    yield (
                        _item_of_request(text, folder, f"line {number} of {path}")
                        if is_requests
                        else Item(_joined(folder, text))
                    )
    except OSError as error:
        msg = f"the list {path} cannot be read: {error.strerror or error}"
        raise MapError(msg) from error


@contextlib.contextmanager
def _open(path: str) -> Iterator[IO[bytes]]:
    if is_url(path):
        files, root = file_system(path)
        with telling(f"the list {path}", "read"), files.open(root, "rb") as file:
            yield cast("IO[bytes]", file)
    else:
        with open(path, "rb") as file:
            yield file


def _item_of_request(text: str, folder: str, where: str) -> Item:
    try:
        (files,) = _Request(**json.loads(text))
        paths = {_encodable(name): _joined(folder, _encodable(path)) for name, path in files.items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        msg = f'{where} is {text:.100}; expected {{"inputs": {{"image": "a.jpg"}}}}, a file for each input'
        raise MapError(msg) from error
    if not paths:
        msg = f"{where} names no file: expected one for each input"
        raise MapError(msg)
    return Item(", ".join(paths.values()), files=json.dumps(paths))


def _encodable(text: object) -> str:
    """The text, if it can be encoded as a file name."""
    if not isinstance(text, str):
        raise TypeError
    os.fsencode(text)
    return text


def _joined(folder: str, path: str) -> str:
    if not path:
        raise ValueError
    return path if not folder or is_url(path) or path.startswith("/") else f"{folder}/{path}"
