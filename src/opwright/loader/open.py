"""Opens operator libraries that an op.py describes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from opwright.builder.library import build_library
from opwright.loader.shared_object import open_operators
from opwright.spec import Library, library_at

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Loaded:
    """An operator library in this process.

    Attributes:
        library: what its op.py describes.
        path: the shared object that was opened.
        ops: its operators, as `torch.ops.<namespace>` has them.
    """

    library: Library
    path: Path
    ops: Any = field(repr=False)


def open(path: str | Path, *, verbose: bool = False) -> Loaded:  # noqa: A001  the public name: opwright.open
    """Build the library at `path` if needed, load it, and give its operators.

    Args:
        path: the folder of an op.py, or the file itself.
        verbose: print each step.

    Raises:
        OpwrightError: the description, the toolchain, a source or the load is wrong; the class says which.

    Example:
        mine = opwright.open("ops/mine")
        mine.ops.scale(torch.ones(3), factor=4)
    """
    library = library_at(path)
    artefact = build_library(library, verbose=verbose)
    open_operators(artefact.path)
    return Loaded(library, artefact.path, getattr(torch.ops, library.namespace))
