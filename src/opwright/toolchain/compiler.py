"""Finds the C++ compiler and nvcc."""

from __future__ import annotations

import functools
import os
import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from opwright.errors import ToolchainError
from opwright.toolchain.run import run

if TYPE_CHECKING:
    from collections.abc import Sequence

# Variables that select nvcc: its command line, and the toolkit's folder.
NVCC_VARIABLES = ("CUDACXX", "CUDA_HOME", "CUDA_PATH")
# The oldest releases that compile PyTorch's headers as C++20, and those that also compile opwright's: g++ 10 crashes.
_OLDEST = {"g++": (10, 11), "clang++": (11, 13)}


@dataclass(frozen=True)
class Compiler:
    """A compiler on this machine.

    Attributes:
        path: the program to run: the compiler, or a launcher such as ccache.
        prefix: arguments that always come first, from a `CXX` such as `ccache g++ -m64`.
    """

    path: Path
    prefix: tuple[str, ...] = ()

    @property
    def command(self) -> list[str]:
        """The first words of a command line."""
        return [str(self.path), *self.prefix]

    @property
    def launcher(self) -> list[str]:
        """The words before the compiler itself: `ccache`, or `env A=1`; empty for most."""
        return self.command[: self._place]

    @property
    def host(self) -> str:
        """The compiler itself, without a launcher and without flags, for nvcc and CMake to call."""
        return self.command[self._place]

    @property
    def flags(self) -> list[str]:
        """The words after the compiler itself."""
        return self.command[self._place + 1 :]

    @property
    def identity(self) -> list[str]:
        """What identifies this compiler in cache keys: an upgrade changes its size or modification time."""
        programs = {path.resolve() for word in self.command if shutil.which(word) for path in _named(word)}
        # `--version` is not used, because a cached build starts no compiler.
        statuses = [(str(path), path.stat()) for path in sorted(programs)]
        stamps = [word for path, status in statuses for word in (path, str(status.st_size), str(status.st_mtime_ns))]
        return [*map(_without_synonyms, self.command), *stamps]

    @property
    def _place(self) -> int:
        # A launcher's options come before the compiler, and the compiler's options after it: it is the last program.
        return max((at for at, word in enumerate(self.command) if shutil.which(word)), default=0)

    @functools.cached_property
    def is_clang(self) -> bool:
        """Whether it is clang++ or derived from it; the compiler is run only if its name is inconclusive."""
        found = Path(shutil.which(self.host) or self.host)
        names = f"{found.name} {found.resolve().name}"
        if "clang" in names or "g++" in names:
            return "clang" in names
        macros = run([*self.command, "-x", "c++", "-dM", "-E", "/dev/null"], check=False).output
        return "#define __clang__ " in macros

    @functools.cached_property
    def version(self) -> str:
        """The line of `--version` with the compiler's version."""
        lines = run([*self.command, "--version"]).output.strip().splitlines()
        release = [line for line in lines if re.search(r"release \d", line)]  # nvcc's fourth line
        return (release or lines or ["unknown"])[0].strip()

    def check_release(self, *, opwrights: bool) -> None:
        """Check that it compiles C++20; it is run once. Compilers other than g++ and clang++ are accepted.

        Args:
            opwrights: whether it is to compile opwright's headers, and not only PyTorch's.

        Raises:
            ToolchainError: it is too old.
        """
        printed = run([*self.command, "--version"], check=False).output.partition("\n")[0]
        name = "clang++" if "clang version" in printed else "g++"
        release = re.search(r"(?:clang version|\)) (\d+)([\d.]*)", printed)
        if release is None or int(release[1]) >= _OLDEST[name][opwrights]:
            return
        oldest = " or ".join(f"{one} {releases[opwrights]}" for one, releases in _OLDEST.items())
        msg = (
            f"{name} {release[1]}{release[2]} ({shutil.which(self.host)}) is too old: opwright compiles C++20, which "
            f"requires {oldest}, or newer. Install one, and set the environment variable CXX to it, such as CXX=g++-12"
        )
        raise ToolchainError(msg)


def is_gcc(command: Sequence[str]) -> bool:
    """Whether the command line runs g++ itself (by the program's name), not a launcher such as ccache."""
    name = Path(os.path.realpath(command[0])).name
    return re.fullmatch(r"(?:\w+-)*(?:g|c)\+\+(?:-[\d.]+)?", name) is not None and "clang" not in name


def cuda_home(nvcc: Compiler) -> Path:
    """The folder of the CUDA toolkit that `nvcc` belongs to.

    Raises:
        ToolchainError: it cannot be determined.
    """
    beside = nvcc.path.resolve().parents[1]
    if (beside / "include" / "cuda_runtime.h").is_file():
        return beside
    # The program is a wrapper: nvcc itself reports its folder.
    dry = run([*nvcc.command, "--dryrun", "-E", "-x", "cu", "/dev/null"], check=False).output
    if here := re.search(r"_HERE_=(\S+)", dry):
        return Path(here[1]).resolve().parent
    msg = f"{nvcc.path} does not report its CUDA toolkit: set CUDA_HOME to the toolkit's folder"
    raise ToolchainError(msg)


def find_cxx() -> Compiler:
    """The C++ compiler: `$CXX`, else g++, c++ or clang++ on the PATH.

    Raises:
        ToolchainError: none is found, or `$CXX` does not name one.
    """
    if named := _words("CXX"):
        return Compiler(_program(named[0], "CXX"), tuple(named[1:]))
    for name in ("g++", "c++", "clang++"):
        if found := shutil.which(name):
            return Compiler(Path(found))
    msg = (
        "no C++ compiler: $CXX is not set, and g++, c++ and clang++ are not on the PATH. "
        "On Debian or Ubuntu, install the package g++"
    )
    raise ToolchainError(msg)


def inductor_settings() -> dict[str, tuple[None, str]]:
    """Inductor's settings for a `$CXX` of several words, which Inductor treats as the name of one program."""
    try:
        cxx = find_cxx()
    except ToolchainError:
        return {}
    return {"cpp.cxx": (None, cxx.host)} if cxx.prefix else {}


def find_nvcc() -> Compiler:
    """The CUDA compiler: `$CUDACXX`, `$CUDA_HOME/bin/nvcc`, the PATH, or /usr/local/cuda.

    Raises:
        ToolchainError: none is found, or a variable names one that does not exist.
    """
    if named := _words("CUDACXX"):
        return Compiler(_program(named[0], "CUDACXX"), tuple(named[1:]))
    for variable in NVCC_VARIABLES[1:]:
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


def _named(word: str) -> list[Path]:
    """The program that `word` names, and others of the same name on the PATH, any of which a launcher may call."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    candidates = [shutil.which(word), *(shutil.which(Path(word).name, path=folder) for folder in folders)]
    return [Path(found) for found in candidates if found]


def _without_synonyms(word: str) -> str:
    """The file that `word` runs if that is g++, which is also called c++ (as by CMake); any other word unchanged."""
    found = shutil.which(word)
    return os.path.realpath(found) if found and is_gcc([found]) else word


def _words(variable: str) -> list[str]:
    try:
        return shlex.split(os.environ.get(variable, ""))
    except ValueError as error:
        given = f"${variable}, {os.environ[variable]!r}"
        msg = f"{given}, is not a valid command line ({error}): correct its quotes or unset it"
        raise ToolchainError(msg) from error


def _program(name: str, variable: str) -> Path:
    found = shutil.which(name)
    if found is None:
        msg = f"${variable} names {name}, which is not an executable program; correct the variable or unset it"
        raise ToolchainError(msg)
    return Path(found)
