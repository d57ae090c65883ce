"""Makes a bundle self-contained: adds the host program, and every library that it and the operators need."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

from opwright.errors import BundleError
from opwright.host.install import install_host
from opwright.toolchain.pytorch import find_pytorch
from opwright.toolchain.run import run

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

PROGRAM = "host/bin/opwright-host"
LAUNCHER = "run"
_LIBRARIES = "host/lib"
# Only the C library comes from the machine: it belongs to the machine's loader, not to a bundle.
_C_LIBRARY = re.compile(
    r"(ld-linux.*|lib(c|m|mvec|dl|pthread|rt|util|resolv|nsl|anl|thread_db|BrokenLocale))\.so(\.\d+)*"
)
_FOUND = re.compile(r"^\s*(\S+) => (/\S.*) \(0x[0-9a-f]+\)$", re.MULTILINE)
_MISSING = re.compile(r"^\s*(\S+) => not found$", re.MULTILINE)


def add_host(folder: Path) -> str:
    """Put the host program, its launcher, and the libraries that they and the operators need into a bundle.

    Args:
        folder: the unfinished bundle, which already holds its operator libraries.

    Returns:
        The path of the program, for the manifest.

    Raises:
        BundleError: a library that is needed is not on this machine.
        OpwrightError: the host cannot be built; the class says why.
    """
    host = install_host()
    program, launcher = folder / PROGRAM, folder / LAUNCHER
    program.parent.mkdir(parents=True)
    shutil.copy2(host / "bin" / "opwright-host", program)
    shutil.copy2(host / "bin" / "opwright-launch", launcher)
    libraries = folder / _LIBRARIES
    libraries.mkdir()
    for name, path in sorted(needed_libraries([program, *sorted(folder.glob("lib/*.so"))]).items()):
        shutil.copy(path, libraries / name)  # under the name it is asked for, and never a link
    return PROGRAM


def needed_libraries(objects: Iterable[Path]) -> dict[str, str]:
    """The shared libraries that `objects` need, directly or indirectly, without the C library's own.

    Args:
        objects: programs and shared objects.

    Returns:
        The path of each on this machine, by the name it is asked for.

    Raises:
        BundleError: one is not on this machine.
    """
    found: dict[str, str] = {}
    torch = str(find_pytorch().lib_dir)
    for path in objects:
        # The loader is asked: only it knows where it looks.
        answer = run(["ldd", path], env={"LD_LIBRARY_PATH": torch}, check=False).output
        if missing := _MISSING.findall(answer):
            msg = f"{path.name} needs {', '.join(missing)}, which this machine does not have: install what provides it"
            raise BundleError(msg)
        found.update((name, where) for name, where in _FOUND.findall(answer) if not _C_LIBRARY.fullmatch(name))
    return found
