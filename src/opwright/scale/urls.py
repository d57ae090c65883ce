"""The file systems behind URLs, and their errors."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

from opwright.errors import MapError, OpwrightError

if TYPE_CHECKING:
    from collections.abc import Iterator

_ADVICE = ". Resume the map when its file system responds again"


def is_url(text: str) -> bool:
    """Whether `text` is an fsspec URL, such as `s3://bucket/folder`, rather than a path."""
    return "://" in text


def file_system(url: str) -> tuple[Any, str]:
    """The fsspec file system of a URL, and the path in it.

    Raises:
        MapError: the file system is not installed, or does not support the URL.
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
    """Convert errors of a file system to MapError, except that a file does not exist.

    Every remote file system raises its own exceptions.

    Args:
        name: the file or folder in use.
        done: the operation as a participle, such as "read".
    """
    try:
        yield
    except (FileNotFoundError, OpwrightError):
        raise
    except Exception as error:
        msg = f"{name} cannot be {done}: {reason_of(error)}" + _ADVICE * is_url(name)
        raise MapError(msg) from error


def reason_of(error: Exception) -> str:
    """The message of an exception in one line."""
    message = str(error)
    if isinstance(error, OSError):  # pyarrow adds text to the system's message
        message = os.strerror(error.errno) if error.errno else error.strerror or message
    return " ".join(message.split()) or type(error).__name__
