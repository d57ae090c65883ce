"""Finds the C++ compiler and nvcc."""

from __future__ import annotations

import functools
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from opwright.errors import ToolchainError
from opwright.toolchain.run import run


@dataclass(frozen=True)
class Compiler:
    """A compiler on this machine.

    Attributes:
        path: the program.
        prefix: arguments that always come first, from a `CXX` such as `ccache g++`.
    """

    path: Path
    prefix: tuple[str, ...] = ()

    @property
    def command(self) -> list[str]:
        """The first words of a command line."""
        return [str(self.path), *self.prefix]

    @property
    def host(self) -> str:
        """The compiler itself, without a launcher such as ccache, for nvcc to call."""
        return [word for word in self.command if not word.startswith("-")][-1]

    @property
    def identity(self) -> list[str]:
        """What identifies this compiler in cache keys: an upgrade changes its size or time."""
        real = self.path.resolve()
        status = real.stat()
        return [str(real), str(status.st_size), str(status.st_mtime_ns), *self.prefix]

    @functools.cached_property
    def version(self) -> str:
        """The line of `--version` with the compiler's version."""
        lines = run([*self.command, "--version"]).output.strip().splitlines()
        release = [line for line in lines if re.search(r"release \d", line)]  # nvcc's fourth line
        return (release or lines or ["unknown"])[0].strip()


def cuda_home(nvcc: Compiler) -> Path:
    """The folder of the CUDA toolkit that `nvcc` belongs to.

    Raises:
        ToolchainError: it cannot be determined.
    """
    beside = nvcc.path.resolve().parents[1]
    if (beside / "include" / "cuda_runtime.h").is_file():
        return beside
    # A wrapper on the PATH: nvcc itself knows its folder.
    dry = run([*nvcc.command, "--dryrun", "-E", "-x", "cu", "/dev/null"], check=False).output
    if here := re.search(r"_HERE_=(\S+)", dry):
        return Path(here[1]).resolve().parent
    msg = f"{nvcc.path} does not report its CUDA toolkit: set CUDA_HOME to the toolkit's folder"
    raise ToolchainError(msg)


def find_cxx() -> Compiler:
    """The C++ compiler: `$CXX`, else g++, c++ or clang++ on the PATH.

    Raises:
        ToolchainError: none is found, or `$CXX` names none.
    """
    named = os.environ.get("CXX", "").split()
    if named:
        return Compiler(_program(named[0], "CXX"), tuple(named[1:]))
    for name in ("g++", "c++", "clang++"):
        if found := shutil.which(name):
            return Compiler(Path(found))
    msg = (
        "no C++ compiler: $CXX is not set, and g++, c++ and clang++ are not on the PATH. "
        "On Debian or Ubuntu, install the package g++"
    )
    raise ToolchainError(msg)


def find_nvcc() -> Compiler:
    """The CUDA compiler: `$CUDACXX`, `$CUDA_HOME/bin/nvcc`, the PATH, or /usr/local/cuda.

    Raises:
        ToolchainError: none is found, or a variable names one that does not exist.
    """
    if named := os.environ.get("CUDACXX", "").split():
        return Compiler(_program(named[0], "CUDACXX"), tuple(named[1:]))
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if home := os.environ.get(variable):
            return Compiler(_program(str(Path(home) / "bin" / "nvcc"), variable))
    found = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if found:
        return Compiler(Path(found))
    msg = (
        "no CUDA compiler: nvcc is neither on the PATH nor in /usr/local/cuda/bin. "
        "Install the CUDA toolkit, or set CUDA_HOME to its folder"
    )
    raise ToolchainError(msg)


def _program(name: str, variable: str) -> Path:
    found = shutil.which(name)
    if found is None:
        msg = f"${variable} names {name}, which is not an executable program; correct the variable or unset it"
        raise ToolchainError(msg)
    return Path(found)
