"""The devices on which an operator library can be checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opwright.toolchain.pytorch import find_pytorch

if TYPE_CHECKING:
    from opwright.spec import Library

DEVICES = ("cpu", "cuda")


def devices_of(library: Library) -> list[str]:
    """The CPU, and the GPU if one is available and the library has CUDA sources, or kernels for it in Python."""
    in_python = any("cuda" in op.python_kernels for op in library.ops.values())
    if (in_python or any(source.suffix == ".cu" for source in library.sources)) and find_pytorch().cuda is not None:
        import torch

        if torch.cuda.is_available():
            return ["cpu", "cuda"]
    return ["cpu"]
