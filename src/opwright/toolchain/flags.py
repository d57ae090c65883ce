"""Composes the flags that compile and link operator libraries.

The just-in-time build, the setuptools front end and the CMake front end all take their flags from here.
"""

from __future__ import annotations

import os
import re
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from opwright.errors import ToolchainError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opwright.toolchain.packages import Package
    from opwright.toolchain.pytorch import PyTorch

Abi = Literal["stable", "full"]
# How Python is used in the sources: not at all; to define a module that Python can import; or to bind functions of
# sources that also register operators, in which case the shared object does not contain the bindings.
Python = Literal["none", "module", "dropped"]

# C++20: the headers check schemas with consteval, and ATen requires it from PyTorch 2.13 on.
STANDARD = "-std=c++20"
# Limits the stable headers to what PyTorch 2.11 has, so that the library runs on 2.11 and newer.
TARGET_VERSION = "-DTORCH_TARGET_VERSION=0x020b000000000000"
# A library with a GNU-unique symbol can never be unloaded. clang++ emits no such symbols, and lacks this flag.
_ONLY_GCC = "-fno-gnu-unique"
_COMMON = ("-O3", "-fPIC", _ONLY_GCC)
# The last -O takes effect. -g3 includes macros. At -Og, too many variables are optimized out.
DEBUG = ("-O0", "-g3")
# nvcc accepts only one -O. -G adds debug information for device code, for cuda-gdb.
_CUDA_DEBUG = ("-O0", "-g", "-G")
# A separate section for each function, so that the linker can drop functions that only a binding calls.
_SECTIONS = ("-ffunction-sections", "-fdata-sections")
# Hides PyInit_, so that no exported function calls the binding.
_HIDE_MODULE = Path(__file__).with_name("hide_module.map")
# Macros that PyTorch's CUDA headers expect: without them, operators for half precision are ambiguous.
_CUDA_NO = ("HALF_OPERATORS", "HALF_CONVERSIONS", "BFLOAT16_CONVERSIONS", "HALF2_OPERATORS")
# Makes sources only declare the functions of opwright/common.h.
COMMON_ELSEWHERE = "-DOPWRIGHT_COMMON_ELSEWHERE"
# For opwright's own sources whose speed does not matter.
QUICK = "-O1"
# Data-center GPUs in use, and PTX, which the driver compiles for later ones.
_CUDA_ARCHITECTURES = "8.0;9.0+PTX"


def include_path() -> Path:
    """The folder that contains `opwright/op.h`."""
    return Path(__file__).resolve().parents[1] / "include"


def for_clang(command: Iterable[str]) -> tuple[str, ...]:
    """`command` without the flags that only g++ supports, including those that nvcc passes on to clang++."""
    words = (re.sub(rf"^(-Xcompiler=.*?),{_ONLY_GCC}(?=,|$)", r"\1", word) for word in command)
    return tuple(word for word in words if word != _ONLY_GCC)


def defines(abi: Abi, name: str, *, cuda: bool) -> list[str]:
    """Macro definitions for the C++ compiler and for nvcc."""
    flags = (
        [TARGET_VERSION] if abi == "stable" else [f"-DTORCH_EXTENSION_NAME={name}", "-DTORCH_API_INCLUDE_EXTENSION_H"]
    )
    return [*flags, *(["-DUSE_CUDA"] if cuda else [])]


def visibility(abi: Abi) -> list[str]:
    """Visibility flags: stable libraries export only what the registration macros mark."""
    return ["-fvisibility=hidden"] if abi == "stable" else []


def sections(python: Python) -> list[str]:
    """Flags that let the linker drop functions that only a binding calls."""
    return list(_SECTIONS) if python == "dropped" else []


def system_include_dirs(
    abi: Abi, torch: PyTorch, *, python: Python = "none", cuda_home: Path | None = None
) -> list[Path]:
    """Folders of system headers, whose warnings are suppressed."""
    folders = torch.include_dirs if abi == "full" else torch.include_dirs[:1]
    if abi == "full" or python != "none":
        folders = [*folders, Path(sysconfig.get_paths()["include"])]
    # The C++ sources of a mixed library may also include cuda_runtime.h; nvcc finds it without a flag.
    return [*folders, *([cuda_home / "include"] if cuda_home else [])]


def cxx_flags(
    abi: Abi,
    torch: PyTorch,
    name: str,
    *,
    packages: Iterable[Package] = (),
    python: Python = "none",
    cuda_home: Path | None = None,
) -> list[str]:
    """Flags for a C++ source."""
    return [
        STANDARD,
        *_COMMON,
        *sections(python),
        *visibility(abi),
        *defines(abi, name, cuda=cuda_home is not None),
        *_includes(system_include_dirs(abi, torch, python=python, cuda_home=cuda_home)),
        *(flag for package in packages for flag in package.cflags),
    ]


def cuda_flags(
    abi: Abi,
    torch: PyTorch,
    name: str,
    *,
    packages: Iterable[Package] = (),
    python: Python = "none",
    given: Sequence[str] = (),
    debug: bool = False,
) -> list[str]:
    """Flags for a CUDA source, compiled by nvcc; `given` are the author's, which are not repeated."""
    host = ",".join([*_COMMON[1:], *sections(python), *visibility(abi)])
    # nvcc accepts only one standard, and builds for every architecture on its command line.
    standard = [] if any(flag.startswith(("-std=", "--std=")) for flag in given) else [STANDARD]
    architectures = [] if any("arch" in flag for flag in given) else default_cuda_architectures()
    return [
        *standard,
        *(_CUDA_DEBUG if debug else _COMMON[:1]),
        "--expt-relaxed-constexpr",
        *architectures,
        f"-Xcompiler={host}",
        *(f"-D__CUDA_NO_{name}__" for name in _CUDA_NO if abi == "full"),
        *defines(abi, name, cuda=True),
        *_includes(system_include_dirs(abi, torch, python=python)),
        *(flag for package in packages for flag in package.cflags),
    ]


def link_flags(
    abi: Abi,
    torch: PyTorch,
    *,
    packages: Iterable[Package] = (),
    python: Python = "none",
    cuda_home: Path | None = None,
) -> list[str]:
    """Flags for linking a shared object."""
    libraries = ["c10", "torch_cpu", "torch"]
    flags = [
        "-shared",
        f"-L{torch.lib_dir}",
        # Linked even if unused: libtorch.so loads the CUDA part of a CUDA build.
        "-Wl,--push-state,--no-as-needed",
        *(f"-l{library}" for library in libraries),
        "-Wl,--pop-state",
        # A package such as opencv4 lists dozens of libraries: link only those that are used.
        "-Wl,--push-state,--as-needed",
        *(["-ltorch_python"] if python == "module" else []),
        *(flag for package in packages for flag in package.ldflags),
        "-ldl",  # dlsym is in libc from glibc 2.34 on
        "-Wl,--pop-state",
    ]
    if python == "dropped":
        flags += linked_without_module()
    if cuda_home is not None:
        return [*flags, f"-L{cuda_home / 'lib64'}", "-lcudart"]
    if abi == "stable" and python == "none":
        # Reports a missing library, with its name, at link time instead of at the first import.
        flags.append("-Wl,--no-undefined")
    return flags


def linked_without_module() -> list[str]:
    """Linker flags that drop a Python module and everything that only the module calls."""
    return ["-Wl,--gc-sections", f"-Wl,--version-script={_HIDE_MODULE}"]


def default_cuda_architectures() -> list[str]:
    """The flags of nvcc for `$TORCH_CUDA_ARCH_LIST`, or for data-center GPUs if it is not set.

    Raises:
        ToolchainError: the variable is not a valid list.
    """
    return cuda_architectures(os.environ.get("TORCH_CUDA_ARCH_LIST") or _CUDA_ARCHITECTURES)


def cuda_architectures(listed: str) -> list[str]:
    """The flags of nvcc for an architecture list such as `8.0;9.0+PTX`.

    Raises:
        ToolchainError: an entry is not valid.
    """
    flags = []
    for entry in re.split(r"[;\s]+", listed.strip()):
        match = re.fullmatch(r"(\d+)\.(\d[a-z]?)(\+PTX)?", entry)
        if match is None:
            msg = f"TORCH_CUDA_ARCH_LIST contains {entry!r}; expected entries such as 9.0 or 9.0+PTX, separated by ;"
            raise ToolchainError(msg)
        number = match[1] + match[2]
        code = f"[sm_{number},compute_{number}]" if match[3] else f"sm_{number}"
        flags.append(f"-gencode=arch=compute_{number},code={code}")
    return flags


def _includes(system: Sequence[Path]) -> list[str]:
    return [f"-I{include_path()}", *(word for folder in system for word in ("-isystem", str(folder)))]
