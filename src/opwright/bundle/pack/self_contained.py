"""Makes a bundle self-contained: adds the host program, and every library that the host and the operators need."""

from __future__ import annotations

import re
import shutil
import stat
from typing import TYPE_CHECKING

from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile

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
# Only the C library comes from the target machine, because it must match the loader there.
_C_LIBRARY = re.compile(
    r"(ld-linux.*|lib(c|m|mvec|dl|pthread|rt|util|resolv|nsl|anl|thread_db|BrokenLocale))\.so(\.\d+)*"
)
_SEARCH_PATHS = {"DT_RPATH", "DT_RUNPATH"}
_FOUND = re.compile(r"^\s*(\S+) => (/\S.*) \(0x[0-9a-f]+\)$", re.MULTILINE)
_MISSING = re.compile(r"^\s*(\S+) => not found$", re.MULTILINE)


def add_host(folder: Path) -> str:
    """Copy the host program, its launcher, and the libraries that they and the operators need into a bundle.

    Args:
        folder: the unfinished bundle, which already holds its operator libraries.

    Returns:
        The path of the program, for the manifest.

    Raises:
        BundleError: a required library is not on this machine.
        OpwrightError: the host cannot be built; the class names the reason.
    """
    host = install_host()
    program, launcher = folder / PROGRAM, folder / LAUNCHER
    program.parent.mkdir(parents=True)
    shutil.copy2(host / "bin" / "opwright-host-in-bundle", program)
    shutil.copy2(host / "bin" / "opwright-launch", launcher)
    libraries = folder / _LIBRARIES
    libraries.mkdir()
    operators = sorted(folder.glob("lib/*.so"))
    for name, path in sorted(needed_libraries([program, *operators]).items()):
        shutil.copy(path, libraries / name)  # under the name that the loader looks up, and never as a link
    for library in (*operators, *sorted(libraries.iterdir())):
        remove_search_path(library)
    return PROGRAM


def remove_search_path(library: Path) -> None:
    """Make a library search for its dependencies only where the program that loads it does: in host/lib.

    The library's own search path is a folder of the machine that built it, and a RUNPATH prevents the loader from
    using the program's. The entries are removed from its dynamic section; nothing else moves.

    Args:
        library: the bundle's copy of the library.
    """
    library.chmod(library.stat().st_mode | stat.S_IWUSR)
    with library.open("r+b") as file:
        elf = ELFFile(file)
        section = next((one for one in elf.iter_segments() if isinstance(one, DynamicSegment)), None)
        if section is None:
            return
        size = elf.structs.Elf_Dyn.sizeof()
        start = section.header.p_offset
        tags = [tag.entry.d_tag for tag in section.iter_tags()]
        file.seek(start)
        entries = [file.read(size) for _ in tags]
        kept = [entry for entry, tag in zip(entries, tags, strict=True) if tag not in _SEARCH_PATHS]
        # An entry of zeros ends the list; more of them are allowed.
        file.seek(start)
        file.write(b"".join(kept).ljust(size * len(entries), b"\0"))


def needed_libraries(objects: Iterable[Path]) -> dict[str, str]:
    """The shared libraries that `objects` need, directly or indirectly, except those of the C library.

    Args:
        objects: programs and shared objects.

    Returns:
        The path of each on this machine, keyed by the name that the loader looks up.

    Raises:
        BundleError: a library is not on this machine.
    """
    found: dict[str, str] = {}
    torch = str(find_pytorch().lib_dir)
    for path in objects:
        # Only the loader knows its search order.
        answer = run(["ldd", path], env={"LD_LIBRARY_PATH": torch}, check=False).output
        if missing := _MISSING.findall(answer):
            msg = f"{path.name} needs {', '.join(missing)}, which this machine does not have: install its package"
            raise BundleError(msg)
        found.update((name, where) for name, where in _FOUND.findall(answer) if not _C_LIBRARY.fullmatch(name))
    return found
