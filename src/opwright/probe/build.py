"""Builds the probe, with or without operator libraries linked into it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from opwright.builder.compile import build_plan
from opwright.builder.plan import Plan
from opwright.errors import BuildError
from opwright.report.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Sequence

_NAME = "probe"


def build_probe(libraries: Sequence[Path] = (), *, verbose: bool = False) -> Path:
    """Build the probe for the installed PyTorch, or find it in the cache.

    Args:
        libraries: shared objects to link into it, in the order in which their operators are to be registered. If
            the probe without libraries is built, this takes a link and no compile.
        verbose: print each step.

    Raises:
        BuildError: a library is missing, or does not link.
        ToolchainError: the compiler or PyTorch is missing.
        CacheError: the cache cannot be written.
    """
    return build_plan(probe_plan(libraries), progress=Progress(_NAME, verbose=verbose)).path


def probe_plan(libraries: Sequence[Path] = ()) -> Plan:
    """The plan of the probe; arguments as for `build_probe`.

    Raises:
        BuildError: a library is missing.
    """
    cpp = Path(__file__).resolve().parent / "cpp"
    host = cpp.parents[1] / "host" / "cpp"
    return Plan(
        name=_NAME,
        sources=tuple(sorted([*host.glob("engine/*.cpp"), *cpp.glob("*.cpp")])),
        include_dirs=(cpp, host, host / "include"),
        abi="full",
        product="program",
        # PyTorch does the work: more optimization only makes the build longer.
        cflags=("-O1",),
        ldflags=tuple(_linked(libraries)),
    )


def _linked(libraries: Sequence[Path]) -> list[str]:
    words = []
    # The loader runs the constructors of a program's libraries from the last one to the first.
    for library in reversed([path.absolute() for path in libraries]):
        if not library.is_file():
            msg = f"the library {library} does not exist, so it cannot be linked into the probe: build it first"
            raise BuildError(msg)
        # A library that has a SONAME is looked up by that name, not by its path, when the program starts.
        words += [str(library), "-Xlinker", "-rpath", "-Xlinker", str(library.parent)]
    # Operators register themselves. Nothing in the program calls the libraries, so the linker would leave them out.
    # RPATH instead of RUNPATH, which does not serve for what the libraries themselves need: a CUDA build of PyTorch.
    return ["-Wl,--disable-new-dtags", "-Wl,--push-state,--no-as-needed", *words, "-Wl,--pop-state"] if words else []
