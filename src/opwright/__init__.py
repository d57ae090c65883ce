"""Describe a PyTorch operator once in Python, make it fast in C++ or CUDA, and run it everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opwright._lazy import names_from
from opwright.errors import (
    BridgeError,
    BuildError,
    BundleError,
    CacheError,
    LoadError,
    MapError,
    OpwrightError,
    SignatureError,
    SpecError,
    ToolchainError,
)

if TYPE_CHECKING:
    from opwright.bencher.bench import bench
    from opwright.bencher.rows import Prepared
    from opwright.bencher.stopping import SpreadRule
    from opwright.bencher.timer import Timing, measure
    from opwright.builder.cmake import cmake_prefix_path
    from opwright.builder.library import build
    from opwright.bundle.ship import ship
    from opwright.checker.check import check
    from opwright.loader.jit import load, load_inline
    from opwright.loader.open import Loaded, open
    from opwright.loader.record import record
    from opwright.notebook import load_ipython_extension
    from opwright.scale.map import map
    from opwright.scale.predictor.predictor import Predictor
    from opwright.spec.find import library_at
    from opwright.spec.library import Library
    from opwright.spec.op import Op
    from opwright.spec.samples import Make, Sample
    from opwright.toolchain.flags import include_path

__version__ = "0.2.0"

__all__ = [
    "BridgeError",
    "BuildError",
    "BundleError",
    "CacheError",
    "Library",
    "LoadError",
    "Loaded",
    "Make",
    "MapError",
    "Op",
    "OpwrightError",
    "Predictor",
    "Prepared",
    "Sample",
    "SignatureError",
    "SpecError",
    "SpreadRule",
    "Timing",
    "ToolchainError",
    "__version__",
    "bench",
    "build",
    "check",
    "cmake_prefix_path",
    "include_path",
    "library_at",
    "load",
    "load_inline",
    "load_ipython_extension",
    "map",
    "measure",
    "open",
    "record",
    "ship",
]

# Imported on first use, so that an op.py or the command line does not wait for modules that it does not use.
_HOMES = {
    "Library": "opwright.spec.library",
    "Loaded": "opwright.loader.open",
    "Make": "opwright.spec.samples",
    "Op": "opwright.spec.op",
    "Predictor": "opwright.scale.predictor.predictor",
    "Prepared": "opwright.bencher.rows",
    "Sample": "opwright.spec.samples",
    "SpreadRule": "opwright.bencher.stopping",
    "Timing": "opwright.bencher.timer",
    "bench": "opwright.bencher.bench",
    "build": "opwright.builder.library",
    "check": "opwright.checker.check",
    "cmake_prefix_path": "opwright.builder.cmake",
    "include_path": "opwright.toolchain.flags",
    "library_at": "opwright.spec.find",
    "load": "opwright.loader.jit",
    "load_inline": "opwright.loader.jit",
    "load_ipython_extension": "opwright.notebook",
    "map": "opwright.scale.map",
    "measure": "opwright.bencher.timer",
    "open": "opwright.loader.open",
    "record": "opwright.loader.record",
    "ship": "opwright.bundle.ship",
}
if not TYPE_CHECKING:  # otherwise a type checker would accept any name
    __getattr__ = names_from(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
