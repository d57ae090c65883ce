"""Builds operator libraries that an op.py describes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opwright.builder.cache import Cache
from opwright.builder.compile import Artefact, build_plan
from opwright.builder.plan import plan_library
from opwright.report.progress import Progress
from opwright.spec import Library, library_at

if TYPE_CHECKING:
    from pathlib import Path


def build(path: str | Path, *, verbose: bool = False, cuda: bool | None = None) -> Path:
    """Build the library that the op.py at `path` describes, unless the cache has it.

    Args:
        path: the folder of an op.py, or the file itself.
        verbose: print each step.
        cuda: build the CUDA sources; by default if this PyTorch is a CUDA build.

    Returns:
        The path of the shared object, for `torch.ops.load_library`.

    Raises:
        OpwrightError: the description, the toolchain or a source is wrong; the class says which.
    """
    return build_library(library_at(path), verbose=verbose, cuda=cuda).path


def build_library(library: Library, *, verbose: bool = False, cuda: bool | None = None) -> Artefact:
    """Build `library`, unless the cache has it; arguments and errors as for `build`."""
    cache = Cache()
    return build_plan(
        plan_library(library, cache, cuda=cuda),
        cache=cache,
        progress=Progress(library.namespace, verbose=verbose),
    )
