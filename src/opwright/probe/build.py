"""Builds the probe program, with operator libraries linked into it or with none."""

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
    """Build the probe for the installed PyTorch, or find it built.

    Args:
        libraries: shared objects to link into it, in the order in which their operators are to be registered. A
            program with libraries takes a link and no compile where the one without them was built.
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
        # Nothing here takes time when it runs, and the compile is shorter.
        cflags=("-O1",),
        ldflags=tuple(_linked(libraries)),
    )


def _linked(libraries: Sequence[Path]) -> list[str]:
    words = []
    # The loader runs the constructors of a program's libraries from the last one to the first.
    for library in reversed([path.absolute() for path in libraries]):
        if not library.is_file():
            msg = f"the library {library} is not there, and cannot be linked into the probe: build it first"
            raise BuildError(msg)
        # Where a library names itself (its SONAME), that name and not the path is looked up when the program starts.
        words += [str(library), "-Xlinker", "-rpath", "-Xlinker", str(library.parent)]
    # Operators register themselves: nothing in the program calls the libraries, and the linker would leave them out.
    return ["-Wl,--push-state,--no-as-needed", *words, "-Wl,--pop-state"] if words else []
