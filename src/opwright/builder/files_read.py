"""Finds the files that a build of an operator library reads, except those of the compiler and of PyTorch."""

from __future__ import annotations

import contextlib
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

from opwright.builder.abi import authors_files
from opwright.builder.plan import Plan, plan_library
from opwright.builder.recipes import compose
from opwright.cache.cache import Cache
from opwright.cache.file_state import state_of
from opwright.toolchain.flags import include_path
from opwright.toolchain.pytorch import find_pytorch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opwright.spec import Library

# Folders that change with the machine, not with the author's work.
_SYSTEM = (Path("/usr/include"), Path("/usr/lib"), Path("/usr/local/cuda"))


def python_files(library: Library) -> list[Path]:
    """The op.py of `library`, and the modules that it has imported from its folder."""
    inside = f"{library.root}/"
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return sorted({Path(file) for file in files if isinstance(file, str) and file.startswith(inside)})


def files_of(library: Library) -> list[Path]:
    """The files that a check of `library` reads: Python, shared objects, and the `files_read` of its sources.

    Raises:
        OpwrightError: the library cannot be planned, because of its description or the toolchain.
    """
    native = files_read(plan_library(library, Cache())) if library.sources else []
    return [*python_files(library), *library.objects, *native]


def files_read(plan: Plan) -> list[Path]:
    """The files that compilers read for `plan`: the sources, the author's headers and those of other folders.

    They are known exactly for the last successful build; otherwise, they are found by following includes.

    Raises:
        ToolchainError: a compiler, PyTorch or a package is missing.
    """
    cache = Cache()
    recipes = compose(plan)
    units = recipes.units_of(plan)
    found = set(authors_files([unit.source for unit in units if unit.source.exists()], _include_dirs(plan)))
    for unit in units:
        with contextlib.suppress(OSError):
            key = recipes.object_key(unit, str(state_of(unit.source, hash_all=True).content))
            found.update(map(Path, cache.files_read(key)))
    tools = (find_pytorch().root, include_path(), Path(sysconfig.get_paths()["include"]), cache.root, *_SYSTEM)
    return sorted(path for path in found if not any(folder in path.parents for folder in tools))


def _include_dirs(plan: Plan) -> Iterable[Path]:
    return (*plan.include_dirs, *(Path(flag[2:]) for flag in plan.cflags if flag.startswith("-I/")))
