"""Composes the flags that compile and link operator libraries.

This is their only source: the just-in-time build, the setuptools front end and the CMake front end
all use it.
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

# C++20: the headers check schemas with consteval, and ATen requires it from PyTorch 2.13 on.
STANDARD = "-std=c++20"
# Runs on PyTorch 2.11 and newer: with it defined, the stable headers declare only what 2.11 has.
TARGET_VERSION = "-DTORCH_TARGET_VERSION=0x020b000000000000"
# -fno-gnu-unique: a library that holds a GNU-unique symbol can never be unloaded.
_COMMON = ("-O3", "-fPIC", "-fno-gnu-unique")
# Data-centre GPUs in use, and PTX, which the driver compiles for later ones.
_CUDA_ARCHITECTURES = "8.0;9.0+PTX"


def include_path() -> Path:
    """The folder that contains `opwright/op.h`."""
    return Path(__file__).resolve().parents[1] / "include"


def defines(abi: Abi, name: str, *, cuda: bool) -> list[str]:
    """Macro definitions, the same for the C++ compiler and for nvcc."""
    flags = (
        [TARGET_VERSION] if abi == "stable" else [f"-DTORCH_EXTENSION_NAME={name}", "-DTORCH_API_INCLUDE_EXTENSION_H"]
    )
    return [*flags, *(["-DUSE_CUDA"] if cuda else [])]


def visibility(abi: Abi) -> list[str]:
    """Flags for visibility: stable libraries export only what the registration macros mark."""
    return ["-fvisibility=hidden"] if abi == "stable" else []


def system_include_dirs(
    abi: Abi, torch: PyTorch, *, python_module: bool = False, cuda_home: Path | None = None
) -> list[Path]:
    """Folders of headers that are not the author's own, whose warnings are suppressed."""
    folders = torch.include_dirs if abi == "full" else torch.include_dirs[:1]
    if abi == "full" or python_module:
        folders = [*folders, Path(sysconfig.get_paths()["include"])]
    # The C++ sources of a mixed library may include cuda_runtime.h too; nvcc finds it by itself.
    return [*folders, *([cuda_home / "include"] if cuda_home else [])]


def cxx_flags(
    abi: Abi,
    torch: PyTorch,
    name: str,
    *,
    packages: Iterable[Package] = (),
    python_module: bool = False,
    cuda_home: Path | None = None,
) -> list[str]:
    """Flags for a C++ source."""
    return [
        STANDARD,
        *_COMMON,
        *visibility(abi),
        *defines(abi, name, cuda=cuda_home is not None),
        *_includes(system_include_dirs(abi, torch, python_module=python_module, cuda_home=cuda_home)),
        *(flag for package in packages for flag in package.cflags),
    ]


def cuda_flags(
    abi: Abi,
    torch: PyTorch,
    name: str,
    *,
    packages: Iterable[Package] = (),
    python_module: bool = False,
) -> list[str]:
    """Flags for a CUDA source, compiled by nvcc."""
    host = ",".join([*_COMMON[1:], *visibility(abi)])
    return [
        STANDARD,
        _COMMON[0],
        "--expt-relaxed-constexpr",
        *cuda_architectures(os.environ.get("TORCH_CUDA_ARCH_LIST") or _CUDA_ARCHITECTURES),
        f"-Xcompiler={host}",
        *defines(abi, name, cuda=True),
        *_includes(system_include_dirs(abi, torch, python_module=python_module)),
        *(flag for package in packages for flag in package.cflags),
    ]


def link_flags(
    abi: Abi,
    torch: PyTorch,
    *,
    packages: Iterable[Package] = (),
    python_module: bool = False,
    cuda_home: Path | None = None,
) -> list[str]:
    """Flags for linking a shared object."""
    libraries = ["c10", "torch_cpu", "torch", *(["torch_python"] if python_module else [])]
    flags = [
        "-shared",
        f"-L{torch.lib_dir}",
        # Kept even if nothing is called: libtorch.so loads the CUDA half of a CUDA build.
        "-Wl,--push-state,--no-as-needed",
        *(f"-l{library}" for library in libraries),
        "-Wl,--pop-state",
        # A package such as opencv4 lists dozens of libraries: keep those that are called.
        "-Wl,--push-state,--as-needed",
        *(flag for package in packages for flag in package.ldflags),
        "-Wl,--pop-state",
    ]
    if cuda_home is not None:
        return [*flags, f"-L{cuda_home / 'lib64'}", "-lcudart"]
    if abi == "stable" and not python_module:
        # A missing library fails the link, with its name, and not the first import.
        flags.append("-Wl,--no-undefined")
    return flags


def cuda_architectures(listed: str) -> list[str]:
    """The flags of nvcc for an architecture list such as `8.0;9.0+PTX`.

    Raises:
        ToolchainError: an entry is not of that form.
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
