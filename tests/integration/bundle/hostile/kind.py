"""The kinds of hostile files, and their code, which creates a canary file when it runs."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch


class Code:
    """Runs Python source when it is unpickled."""

    def __init__(self, code: str) -> None:
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, (self.code,)


@dataclass(frozen=True)
class Kind:
    """A kind of hostile file.

    Attributes:
        name: a description.
        make: writes the file, whose code creates the canary at the given path.
        load: the loader that runs the code.
        suffix: the suffix of its name.
        runs_here: whether this release of PyTorch runs the code; every release reads the file.
    """

    name: str
    make: Callable[[Path, Path, Path, Path], None] = field(repr=False)
    load: Callable[[Path], None]
    suffix: str = ".pt2"
    runs_here: bool = True


def python(canary: Path) -> str:
    """An expression that creates the canary and can be embedded in other text: one line, without double quotes."""
    return f"__import__('pathlib').Path('{canary}').touch()"


def pickled(canary: Path) -> bytes:
    """The output of `torch.save` for an object that creates the canary when it is unpickled."""
    buffer = io.BytesIO()
    torch.save({"a": Code(python(canary))}, buffer)
    return buffer.getvalue()
