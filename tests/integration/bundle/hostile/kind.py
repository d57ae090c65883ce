"""What a hostile file is, and the code in it: it makes a canary when it runs."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch


class Code:
    """What runs a text of Python when it is unpickled."""

    def __init__(self, code: str) -> None:
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, (self.code,)


@dataclass(frozen=True)
class Kind:
    """A kind of hostile file.

    Attributes:
        name: what it is.
        make: writes the file, whose code makes the canary at the given path.
        load: the loader that runs the code.
        suffix: the ending of its name.
        runs_here: whether this release of PyTorch runs the code; every release reads the file.
    """

    name: str
    make: Callable[[Path, Path, Path, Path], None] = field(repr=False)
    load: Callable[[Path], None]
    suffix: str = ".pt2"
    runs_here: bool = True


def python(canary: Path) -> str:
    """An expression that makes the canary, and fits into other texts: one line, without the other kind of quotes."""
    return f"__import__('pathlib').Path('{canary}').touch()"


def pickled(canary: Path) -> bytes:
    """What `torch.save` writes of an object that makes the canary when it is unpickled."""
    buffer = io.BytesIO()
    torch.save({"a": Code(python(canary))}, buffer)
    return buffer.getvalue()
