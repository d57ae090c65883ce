"""The devices for which this machine builds and checks an operator library."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from opwright.errors import ToolchainError
from opwright.toolchain.compiler import NVCC_VARIABLES, find_nvcc
from opwright.toolchain.pytorch import find_pytorch

if TYPE_CHECKING:
    from opwright.spec import Library

DEVICES = ("cpu", "cuda")
# What NVIDIA's driver creates, on Linux and in WSL.
_DRIVER = (Path("/dev/nvidiactl"), Path("/dev/dxg"))


def why_no_cuda() -> str:
    """Why CUDA sources are left out by default; empty if they are compiled.

    A machine with a GPU compiles them, so a missing nvcc is an error there.
    """
    if find_pytorch().cuda is None:
        return "this PyTorch is a CPU build; --cuda compiles them anyway"
    if any(map(os.environ.get, NVCC_VARIABLES)) or any(path.exists() for path in _DRIVER):
        return ""
    try:
        find_nvcc()
    except ToolchainError:
        return "this machine has neither nvcc nor a GPU; --cuda requires nvcc"
    return ""


def devices_of(library: Library) -> list[str]:
    """The CPU, and the GPU if one is available and the library has CUDA sources, or kernels for it in Python."""
    in_python = any("cuda" in op.python_kernels for op in library.ops.values())
    if (in_python or any(source.suffix == ".cu" for source in library.sources)) and find_pytorch().cuda is not None:
        import torch

        if torch.cuda.is_available():
            return ["cpu", "cuda"]
    return ["cpu"]
