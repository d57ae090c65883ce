"""Opens operator libraries that an op.py describes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from opwright.builder.library import build_library
from opwright.loader.external import check_description, is_external, open_external
from opwright.loader.register import define, register
from opwright.loader.shared_object import open_operators
from opwright.spec import Library, library_at

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Loaded:
    """An operator library in this process.

    Attributes:
        library: what its op.py describes.
        path: the shared object that was built and opened; None if the library has no native sources.
        ops: its operators, `torch.ops.<namespace>`.
    """

    library: Library
    path: Path | None
    ops: Any = field(repr=False)


def open(path: str | Path, *, verbose: bool = False) -> Loaded:
    """Build the library at `path` if needed, and load it.

    Args:
        path: the folder of an op.py, or the file itself.
        verbose: print each step.

    Raises:
        OpwrightError: the description, the toolchain, a source or the load failed; the class says which.

    Example:
        mine = opwright.open("ops/mine")
        mine.ops.scale(torch.ones(3), factor=4)
    """
    return open_library(library_at(path), verbose=verbose)


def open_library(library: Library, *, verbose: bool = False, built: Path | None = None) -> Loaded:
    """Build `library` if needed, load it, and register what is derived from its references.

    For operators that somebody else registers nothing is derived: their schemas are compared with the references.

    Args:
        library: the library.
        verbose: print each step.
        built: its shared object, if it is already built.

    Raises:
        OpwrightError: as for `open`.
    """
    path = built
    if library.is_external:
        open_external(library)
    elif library.sources:
        path = path or build_library(library, verbose=verbose).path
        open_operators(path)
    else:
        define(library)
    if is_external(library, path):
        check_description(library)
    else:
        register(library)
    return Loaded(library, path, getattr(torch.ops, library.namespace))
