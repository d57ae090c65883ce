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
        libraries: shared objects to link into it, in the order in which to register their operators. If the probe
            without libraries is already built, this only links.
        verbose: print each step.

    Raises:
        BuildError: a library is missing, or does not link.
        ToolchainError: the compiler or PyTorch is missing.
        CacheError: the cache cannot be written.
    """
    return build_plan(probe_plan(libraries), progress=Progress(_NAME, verbose=verbose)).path


def probe_plan(libraries: Sequence[Path] = ()) -> Plan:
    """The build plan of the probe; the arguments are those of `build_probe`.

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
        # PyTorch does the work, so more optimization would only slow down the build.
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
        # When the program starts, a library that has a SONAME is looked up by that name, not by its path.
        words += [str(library), "-Xlinker", "-rpath", "-Xlinker", str(library.parent)]
    # Operators register themselves. The program does not call the libraries, so the linker would drop them. RPATH
    # instead of RUNPATH, which does not apply to the libraries' own dependencies, such as a CUDA build of PyTorch.
    return ["-Wl,--disable-new-dtags", "-Wl,--push-state,--no-as-needed", *words, "-Wl,--pop-state"] if words else []
