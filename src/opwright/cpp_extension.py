"""C++ and CUDA extensions for scripts and setup.py files, with names from `torch.utils.cpp_extension`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opwright._lazy import names_from

if TYPE_CHECKING:
    from opwright.builder.setuptools import BuildExtension, OpExtension
    from opwright.loader.jit import load, load_inline

__all__ = ["BuildExtension", "OpExtension", "load", "load_inline"]

# Imported on first use: a setup.py does not need torch, nor a script setuptools.
_HOMES = {
    "BuildExtension": "opwright.builder.setuptools",
    "OpExtension": "opwright.builder.setuptools",
    "load": "opwright.loader.jit",
    "load_inline": "opwright.loader.jit",
}
if not TYPE_CHECKING:  # a type checker would accept every name
    __getattr__ = names_from(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
