"""Describe a PyTorch operator once in Python, make it fast in C++ or CUDA, run it everywhere."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from opwright.errors import (
    BridgeError,
    BuildError,
    BundleError,
    CacheError,
    LoadError,
    OpwrightError,
    SignatureError,
    SpecError,
    ToolchainError,
)
from opwright.spec import Library, Op

if TYPE_CHECKING:
    from opwright.bencher.bench import bench
    from opwright.builder.cmake import cmake_prefix_path
    from opwright.builder.library import build
    from opwright.bundle.ship import ship
    from opwright.checker.check import check
    from opwright.loader.jit import load, load_inline
    from opwright.loader.open import open
    from opwright.toolchain.flags import include_path

__version__ = "0.1.0"

__all__ = [
    "BridgeError",
    "BuildError",
    "BundleError",
    "CacheError",
    "Library",
    "LoadError",
    "Op",
    "OpwrightError",
    "SignatureError",
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

# Found when first asked for: describing operators must not cost the import of torch.
_HOMES = {
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
