"""Makes a bundle self-contained: adds the host program, and every library that it and the operators need."""

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
# Only the C library comes from the machine: it belongs to the machine's loader, not to a bundle.
_C_LIBRARY = re.compile(
    r"(ld-linux.*|lib(c|m|mvec|dl|pthread|rt|util|resolv|nsl|anl|thread_db|BrokenLocale))\.so(\.\d+)*"
)
_SEARCH_PATHS = {"DT_RPATH", "DT_RUNPATH"}
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
    shutil.copy2(host / "bin" / "opwright-host-in-bundle", program)
    shutil.copy2(host / "bin" / "opwright-launch", launcher)
    libraries = folder / _LIBRARIES
    libraries.mkdir()
    operators = sorted(folder.glob("lib/*.so"))
    for name, path in sorted(needed_libraries([program, *operators]).items()):
        shutil.copy(path, libraries / name)  # under the name it is asked for, and never a link
    for library in (*operators, *sorted(libraries.iterdir())):
        remove_search_path(library)
    return PROGRAM


def remove_search_path(library: Path) -> None:
    """Make a library look for others only where the program that opens it does: in host/lib.

    What it names itself is a folder of the machine that it was built on, and a RUNPATH keeps the program's from serving
    for it. The entries are taken out of its dynamic section; nothing else moves.

    Args:
        library: the bundle's copy of it.
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
        # The list ends with an entry of zeros; more of them are allowed.
        file.seek(start)
        file.write(b"".join(kept).ljust(size * len(entries), b"\0"))


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
