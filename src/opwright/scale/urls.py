"""File systems behind URLs, and what they say when something goes wrong."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

from opwright.errors import MapError, OpwrightError

if TYPE_CHECKING:
    from collections.abc import Iterator

_ADVICE = ". Resume the map when its file system answers again"


def is_url(text: str) -> bool:
    """Whether `text` is a URL for fsspec, such as `s3://bucket/folder`, and not a path."""
    return "://" in text


def file_system(url: str) -> tuple[Any, str]:
    """The file system of fsspec for a URL, and the path there.

    Raises:
        MapError: it is not installed, or does not know the URL.
    """
    try:
        import fsspec

        files, root = fsspec.core.url_to_fs(url)
    except (ImportError, ValueError) as error:
        msg = f"{url} cannot be used: {error}"
        raise MapError(msg) from error
    return files, str(root)


@contextlib.contextmanager
def telling(name: str, done: str) -> Iterator[None]:
    """Within it, what goes wrong with a file system becomes a MapError, unless a file does not exist.

    Every remote file system raises exceptions of its own.

    Args:
        name: of what is used there.
        done: what is done with it: "read".
    """
    try:
        yield
    except (FileNotFoundError, OpwrightError):
        raise
    except Exception as error:
        msg = f"{name} cannot be {done}: {reason_of(error)}" + _ADVICE * is_url(name)
        raise MapError(msg) from error


def reason_of(error: Exception) -> str:
    """What an exception says, in one line."""
    said = str(error)
    if isinstance(error, OSError):  # pyarrow says more than the system does
        said = os.strerror(error.errno) if error.errno else error.strerror or said
    return " ".join(said.split()) or type(error).__name__
