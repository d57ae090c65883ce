"""Describe a PyTorch operator once in Python, make it fast in C++ or CUDA, run it everywhere."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from opwright.errors import (
    BuildError,
    BundleError,
    CacheError,
    LoadError,
    OpwrightError,
    SpecError,
    ToolchainError,
)

if TYPE_CHECKING:
    from opwright.bencher.bench import bench
    from opwright.builder.cmake import cmake_prefix_path
    from opwright.builder.library import build
    from opwright.bundle.ship import ship
    from opwright.checker.check import check
    from opwright.loader.jit import load, load_inline
    from opwright.loader.open import Loaded, open
    from opwright.spec.library import Library
    from opwright.spec.op import Op
    from opwright.spec.samples import Make, Sample
    from opwright.toolchain.flags import include_path

__version__ = "0.1.0"

__all__ = [
    "BuildError",
    "BundleError",
    "CacheError",
    "Library",
    "LoadError",
    "Loaded",
    "Make",
    "Op",
    "OpwrightError",
    "Sample",
    "SpecError",
    "ToolchainError",
    "__version__",
    "bench",
    "build",
    "check",
    "cmake_prefix_path",
    "include_path",
    "load",
    "load_inline",
    "open",
    "ship",
]

# Imported at first use: neither an op.py nor the command line waits for what it does not use.
_HOMES = {
    "Library": "opwright.spec.library",
    "Loaded": "opwright.loader.open",
    "Make": "opwright.spec.samples",
    "Op": "opwright.spec.op",
    "Sample": "opwright.spec.samples",
    "bench": "opwright.bencher.bench",
    "build": "opwright.builder.library",
    "check": "opwright.checker.check",
    "cmake_prefix_path": "opwright.builder.cmake",
    "include_path": "opwright.toolchain.flags",
    "load": "opwright.loader.jit",
    "load_inline": "opwright.loader.jit",
    "open": "opwright.loader.open",
    "ship": "opwright.bundle.ship",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        msg = f"module 'opwright' has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
