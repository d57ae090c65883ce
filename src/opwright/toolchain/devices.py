"""The devices on which an operator library can be checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opwright.toolchain.pytorch import find_pytorch

if TYPE_CHECKING:
    from opwright.spec import Library

DEVICES = ("cpu", "cuda")


def devices_of(library: Library) -> list[str]:
    """The CPU, and the GPU if one is available and the library has CUDA sources."""
    if any(source.suffix == ".cu" for source in library.sources) and find_pytorch().cuda is not None:
        import torch

        if torch.cuda.is_available():
            return ["cpu", "cuda"]
    return ["cpu"]
