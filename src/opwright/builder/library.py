"""Builds operator libraries that an op.py describes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from opwright.builder.compile import Artefact, build_plan
from opwright.builder.files_read import python_files
from opwright.builder.plan import Plan, plan_library
from opwright.cache.cache import Cache
from opwright.report.progress import Progress
from opwright.spec import Library, library_at
from opwright.spec.stand_in import describe_without_pytorch


def build(path: str | Path, *, verbose: bool = False, cuda: bool | None = None, debug: bool = False) -> Path:
    """Build the library that the op.py at `path` describes, unless the cache has it.

    Args:
        path: the folder of an op.py, or the file itself.
        verbose: print each step.
        cuda: build the CUDA sources; by default, if this PyTorch is a CUDA build and this machine has nvcc or a GPU.
        debug: build for a debugger: not optimized, with debug information for lines, variables and macros.

    Returns:
        The path of the shared object, for `torch.ops.load_library`.

    Raises:
        OpwrightError: the description, the toolchain or a source is wrong; the class indicates which.
    """
    return build_described(path, verbose=verbose, cuda=cuda, debug=debug)[1].path


def build_described(
    path: str | Path, *, verbose: bool = False, cuda: bool | None = None, debug: bool = False
) -> tuple[Library, Artefact]:
    """Build the library that the op.py at `path` describes, and return both; arguments and errors as for `build`."""
    cache = Cache()
    described = describe(path, cache, cuda=cuda, debug=debug)
    library = described.library
    return library, build_plan(described.plan, cache=cache, progress=Progress(library.namespace, verbose=verbose))


@dataclass(frozen=True)
class Described:
    """A library and its build plan.

    Attributes:
        library: what its op.py describes. Only its names and schemas may be usable, because PyTorch is imported only if
            op.py uses it.
        plan: the build.
        python_files: the op.py, and the modules that it imported from its folder.
    """

    library: Library
    plan: Plan
    python_files: tuple[Path, ...]


def describe(path: str | Path, cache: Cache, *, cuda: bool | None = None, debug: bool = False) -> Described:
    """Run the op.py at `path`, and plan the build of its library; arguments and errors as for `build`."""

    def run() -> Described:
        library = library_at(path)
        return Described(library, plan_library(library, cache, cuda=cuda, debug=debug), tuple(python_files(library)))

    given = Path(path)
    return describe_without_pytorch(given if given.is_dir() else given.parent, run)


def build_library(
    library: Library, *, verbose: bool = False, cuda: bool | None = None, debug: bool = False
) -> Artefact:
    """Build `library`, unless the cache has it; arguments and errors as for `build`."""
    cache = Cache()
    return build_plan(
        plan_library(library, cache, cuda=cuda, debug=debug),
        cache=cache,
        progress=Progress(library.namespace, verbose=verbose),
    )
