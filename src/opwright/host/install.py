"""Builds the host's library, program and CMake package for the installed PyTorch, into the cache.

CMake calls the same file: `python -m opwright.host.install` prints the folder.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from opwright.cache.cache import Cache, digest
from opwright.errors import OpwrightError, ToolchainError
from opwright.toolchain.compiler import find_cxx
from opwright.toolchain.packages import package_versions
from opwright.toolchain.pytorch import find_pytorch
from opwright.toolchain.run import failure, run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_NAME = "opwright_host"
_CPP = Path(__file__).resolve().parent / "cpp"
_VERSION = re.compile(r"^__version__ = .*", flags=re.MULTILINE)
_NOT_INSTALLED = {"tests"}
# The packages' names in pkg-config, and in Debian.
PACKAGES = {
    "nlohmann_json": "nlohmann-json3-dev",
    "CLI11": "libcli11-dev",
    "libcrypto": "libssl-dev",
    "libturbojpeg": "libturbojpeg0-dev",
    "libpng": "libpng-dev",
    "minizip": "libminizip-dev",
}
_STEP = re.compile(r"^\[(\d+)/(\d+)\] (?:Building|Linking) .*?([^/ ]+?)(?:\.o)?$")


def install_host(*, verbose: bool = False) -> Path:
    """Build the host, which takes about a minute, or find it in the cache.

    Safe to call from several processes at the same time: one builds, and the others wait and use its result.

    Args:
        verbose: print each step.

    Returns:
        The folder with `bin/opwright-host`, `lib/libopwright_host.so`, `include/` and the CMake package.

    Raises:
        ToolchainError: CMake, the compiler, PyTorch or a package is missing.
        BuildError: a source is rejected.
        CacheError: the cache cannot be written.
    """
    cache = Cache()
    torch, cxx = find_pytorch(), find_cxx()
    recipe = digest([*torch.identity, *cxx.identity, *_packages(), *_sources()])
    if (found := cache.find_folder(recipe)) is not None:
        return found
    cxx.check_release(opwrights=True)
    from opwright.builder import ninja
    from opwright.builder.provenance import provenance
    from opwright.report.progress import Progress

    with Progress(_NAME, verbose=verbose) as shown, cache.building(recipe, shown.note) as work:
        if (found := cache.find_folder(recipe)) is not None:
            return found
        shown.step("configure", "CMake")
        settings = {
            "TORCH_DIR": torch.root,
            "CMAKE_CXX_COMPILER": cxx.host,
            "CMAKE_CXX_COMPILER_LAUNCHER": ";".join(cxx.launcher),
            "CMAKE_CXX_FLAGS": shlex.join(cxx.flags),
            "CMAKE_MAKE_PROGRAM": ninja.program(),
            "CMAKE_INSTALL_PREFIX": work / "prefix",
        }
        words = [f"-D{name}={value}" for name, value in settings.items()]
        build = work / "build"
        _require_success(["cmake", "-G", "Ninja", "-S", _CPP, "-B", build, *words])

        def show(line: str) -> None:
            if step := _STEP.match(line):
                shown.step("build", step[3], int(step[1]), int(step[2]))

        jobs = ["--parallel", os.environ["MAX_JOBS"]] if os.environ.get("MAX_JOBS") else []
        _require_success(["cmake", "--build", build, "--target", "install", *jobs], show)
        return cache.keep_folder(recipe, work / "prefix", provenance(_NAME, _CPP))


def host_program(*, verbose: bool = False) -> Path:
    """The program that runs bundles; arguments and errors as for `install_host`."""
    return install_host(verbose=verbose) / "bin" / "opwright-host"


def _packages() -> list[str]:
    versions = package_versions(PACKAGES)
    if missing := [f"{name} ({debian})" for name, debian in PACKAGES.items() if name not in versions]:
        msg = (
            f"the host needs packages that are missing: {', '.join(missing)}. Install their development files (the "
            "names of Debian's packages are in parentheses). `opwright doctor` shows what is installed"
        )
        raise ToolchainError(msg)
    return [f"{name} {version}" for name, version in versions.items()]


def _sources() -> list[str | bytes]:
    # CMake reads the version from the same line. This file contains the settings.
    face = (_CPP.parents[1] / "__init__.py").read_text(encoding="utf-8")
    parts: list[str | bytes] = [*_VERSION.findall(face), Path(__file__).read_bytes()]
    for path in sorted(_CPP.rglob("*")):
        where = path.relative_to(_CPP)
        if path.is_file() and where.parts[0] not in _NOT_INSTALLED:
            parts += [str(where), path.read_bytes()]
    return parts


def _require_success(command: Sequence[str | Path], on_line: Callable[[str], None] | None = None) -> None:
    # The errors of the linker are read in English.
    completed = run(command, env={"LC_ALL": "C"}, check=False, on_line=on_line)
    if completed.exit_code != 0:
        raise failure(completed, "the host cannot be built", is_authors=False)


def main(arguments: Sequence[str] = ()) -> int:
    """Print the folder for CMake, and return the exit code."""
    try:
        sys.stdout.write(f"{install_host(verbose='--verbose' in arguments)}\n")
    except OpwrightError as error:
        sys.stderr.write(f"{error}\n")  # CMake reports it as its own error
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
