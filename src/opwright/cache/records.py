"""Records of builds: the files that a build read, and its product.

Other users may have damaged or written these files: whatever they contain, no path outside their cache is used.
"""

from __future__ import annotations

import json
import os
import re
import stat
from typing import TYPE_CHECKING, Any

from opwright.cache.file_state import has_state

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_PRODUCT = re.compile(r"(?:objects/([0-9a-f]{40})\.o|(?:libraries|precompiled)/([0-9a-f]{40})/[^/\0]+)")
# Far larger than the record of the largest build.
_MOST_BYTES = 2**27


def read_bytes(path: Path) -> bytes | None:
    """The content of the file at `path`; None if it is missing, unreadable, too large or not a regular file."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(handle)
            return file.read() if stat.S_ISREG(status.st_mode) and status.st_size <= _MOST_BYTES else None
    except (OSError, ValueError):
        return None


def read_json(path: Path) -> Any:
    """The content of the JSON file at `path`; None if it is missing or cannot be read."""
    raw = read_bytes(path)
    try:
        return None if raw is None else json.loads(raw)
    except (ValueError, RecursionError):
        return None


def read_variants(path: Path) -> list[dict[str, Any]]:
    """The builds in the record at `path`, newest first; empty if it is missing or damaged."""
    variants = read_json(path)
    return [variant for variant in variants if isinstance(variant, dict)] if isinstance(variants, list) else []


def current_product(root: Path, variant: dict[str, Any]) -> tuple[str, Path] | None:
    """The product of `variant` with its name, if it is intact and the files that the build read are unchanged.

    Args:
        root: the folder of the cache.
        variant: one build in a record.
    """
    try:
        product, state, read, absent = (variant[name] for name in ("product", "state", "read", "absent"))
        found = _PRODUCT.fullmatch(product)
        if found is None:
            return None
        name, path = found[1] or found[2], root / product
        if (
            state[4][:40] == name
            and has_state(path, state)
            and all(has_state(path, known) for path, known in read.items())
            and not _has_appeared(absent)
            and is_inside(root, product)
            and os.access(path, os.R_OK)
        ):
            return name, path
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, OSError):
        return None  # malformed
    return None


def is_inside(root: Path, place: str) -> bool:
    """Whether no symbolic link in the path of `place` leads out of `root`, or elsewhere inside it."""
    return os.path.realpath(root / place) == f"{os.path.realpath(root)}/{place}"


def names_in(folder: str) -> frozenset[str]:
    """The names of the files and folders in `folder`.

    Raises:
        OSError: it cannot be read.
    """
    with os.scandir(folder) as inside:
        return frozenset(one.name for one in inside)


def grouped(absent: Iterable[str]) -> dict[str, list[str]]:
    """Absent paths grouped by folder, as in records; the path of a folder ends with a slash."""
    groups: dict[str, list[str]] = {}
    for path in sorted(absent):
        folder, _, name = path.removesuffix("/").rpartition("/")
        groups.setdefault(folder or "/", []).append(name + path[len(path.removesuffix("/")) :])
    return groups


def _has_appeared(absent: dict[str, list[str]]) -> bool:
    """Whether one of the names is now a file, or one that ends with a slash is now a folder."""
    return any(_holds_one(folder, names) for folder, names in absent.items())


def _holds_one(folder: str, names: list[str]) -> bool:
    try:
        # List a folder, which has few files, once, instead of testing hundreds of names that must be absent.
        present = names_in(folder)
        candidates = [f"{folder}/{name}" for name in names if name.removesuffix("/") in present]
    except PermissionError:
        candidates = [f"{folder}/{name}" for name in names]
    except (FileNotFoundError, NotADirectoryError):
        return False
    folders = [path for path in candidates if path.endswith("/")]
    return any(map(os.path.isfile, candidates)) or any(map(os.path.isdir, folders))
