"""The command line of nvcc for the CUDA sources of a setup.py, with the flags that PyTorch's builder uses."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from opwright.errors import ToolchainError
from opwright.toolchain.compiler import Compiler, find_cxx, find_nvcc
from opwright.toolchain.flags import STANDARD, default_cuda_architectures
from opwright.toolchain.pytorch import find_pytorch

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SUFFIXES = frozenset({".cu", ".cuh"})


def compiler() -> Compiler:
    """nvcc: the command line in `$PYTORCH_NVCC`, or the one that opwright finds.

    Raises:
        ToolchainError: there is none, or this PyTorch cannot load its output.
    """
    torch = find_pytorch()
    if torch.cuda is None:
        msg = (
            f"there are CUDA sources, but this PyTorch ({torch.version}) is a CPU build: install a CUDA build of "
            "torch, or omit the .cu files if torch.version.cuda is None"
        )
        raise ToolchainError(msg)
    if words := shlex.split(os.environ.get("PYTORCH_NVCC", "")):
        return Compiler(Path(shutil.which(words[0]) or words[0]), tuple(words[1:]))
    return find_nvcc()


def check_release() -> None:
    """Check that nvcc and PyTorch belong to the same major release of CUDA.

    Raises:
        ToolchainError: they do not.
    """
    release = re.search(r"release (\d+)\.", compiler().version)
    wanted = str(find_pytorch().cuda)
    if release is not None and release[1] != wanted.partition(".")[0]:
        msg = (
            f"nvcc is from CUDA {release[1]}, but PyTorch uses CUDA {wanted}: their objects are incompatible. "
            "Install the CUDA toolkit of PyTorch's release, or set CUDA_HOME to it"
        )
        raise ToolchainError(msg)


def command(flags: Iterable[str]) -> list[str]:
    """The command line of nvcc with `flags`."""
    return [*compiler().command, *flags]


def flags(given: Sequence[str]) -> list[str]:
    """The author's flags, and those that PyTorch's builder adds."""
    from torch.utils.cpp_extension import COMMON_NVCC_FLAGS

    host = [] if any(flag.startswith(("-ccbin", "--compiler-bindir")) for flag in given) else ["-ccbin", _host()]
    standard = [] if any(flag.startswith(("-std=", "--std=")) for flag in given) else [STANDARD]
    return [*COMMON_NVCC_FLAGS, "--compiler-options", "-fPIC", *given, *_architectures(given), *host, *standard]


def _host() -> str:
    """The host compiler of nvcc: `$CC`, as in PyTorch's builder, or the C++ compiler."""
    if words := shlex.split(os.environ.get("CC", "")):
        return Compiler(Path(words[0]), tuple(words[1:])).host
    return find_cxx().host


def _architectures(given: Sequence[str]) -> list[str]:
    import torch
    from torch.utils.cpp_extension import _get_cuda_arch_flags

    if os.environ.get("TORCH_CUDA_ARCH_LIST") or torch.cuda.is_available():
        return list(_get_cuda_arch_flags(list(given)))
    return [] if any("arch" in flag for flag in given) else default_cuda_architectures()
