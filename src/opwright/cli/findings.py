"""What `opwright doctor` looks for on this machine."""

from __future__ import annotations

import functools
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opwright.builder.ninja import program as ninja_program
from opwright.cache.cache import Cache
from opwright.errors import OpwrightError, ToolchainError
from opwright.host.install import PACKAGES as HOST_PACKAGES
from opwright.toolchain.compiler import find_cxx, find_nvcc
from opwright.toolchain.compute_sanitizer import find_compute_sanitizer
from opwright.toolchain.packages import find_package
from opwright.toolchain.pytorch import find_pytorch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


@dataclass(frozen=True)
class Finding:
    """The outcome of one search.

    Attributes:
        what: what was searched for.
        needed: what it is needed for.
        required: whether nothing can be built without it.
        found: its version and path; empty if it is missing.
        advice: how to install it; empty if it was found.
    """

    what: str
    needed: str
    required: bool
    found: str
    advice: str


def find_all(packages: Iterable[str]) -> list[Finding]:
    """Search for everything that opwright uses, and for further pkg-config packages."""
    return [
        _look("PyTorch", "everything", _pytorch, required=True),
        _look("C++ compiler", "C++ sources", _cxx, required=True),
        _look("ninja", "compiling in parallel", ninja_program, required=True),
        _look("nvcc", "CUDA sources", _nvcc),
        _look("GPU", "running CUDA code", _gpu),
        _look("compute-sanitizer", "check --sanitize memcheck", lambda: str(find_compute_sanitizer())),
        _look("pkg-config", "packages= of a library", lambda: _program("pkg-config")),
        _look("cmake", "the host, C++ applications", lambda: _program("cmake")),
        *(_look(name, "the host: running bundles", functools.partial(_host_package, name)) for name in HOST_PACKAGES),
        *(_look(f"package {name}", "--package", functools.partial(_package, name), required=True) for name in packages),
        _look("cache", "reusing builds", _cache, required=True),
    ]


def _look(what: str, needed: str, find: Callable[[], str], *, required: bool = False) -> Finding:
    try:
        return Finding(what, needed, required, find(), "")
    except OpwrightError as error:
        return Finding(what, needed, required, "", str(error))


def _pytorch() -> str:
    torch = find_pytorch()
    built = f"CUDA {torch.cuda}" if torch.cuda else "CPU"
    return f"{torch.version}, {built} build, {torch.root}"


def _cxx() -> str:
    compiler = find_cxx()
    compiler.check_release(opwrights=True)
    return f"{compiler.version}, {compiler.path}"


def _nvcc() -> str:
    compiler = find_nvcc()
    return f"{compiler.version}, {compiler.path}"


def _gpu() -> str:
    import torch

    if torch.cuda.is_available():
        return ", ".join(torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count()))
    built = "this PyTorch is a CPU build" if torch.version.cuda is None else "the driver reports none"
    msg = f"no usable GPU: {built}. CUDA sources can still be compiled"
    raise ToolchainError(msg)


def _package(name: str) -> str:
    return find_package(name).version


def _host_package(name: str) -> str:
    try:
        return _package(name)
    except ToolchainError as error:
        msg = f"{name}'s development files: install the package {HOST_PACKAGES[name]}"
        raise ToolchainError(msg) from error


def _program(name: str) -> str:
    if found := shutil.which(name):
        return found
    msg = f"{name} is not on the PATH: install the package {name}"
    raise ToolchainError(msg)


def _cache() -> str:
    cache = Cache()
    return f"{cache.root}, {cache.size() / 2**20:.0f} MiB"
