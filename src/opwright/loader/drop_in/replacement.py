"""Replaces PyTorch's builder with opwright's, in this process and in the Python processes that it starts."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from importlib.abc import Loader, MetaPathFinder
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_TORCHS = "torch.utils.cpp_extension"
# The module that defines each replacement, by name. All other names remain PyTorch's.
_HOMES = {
    "BuildExtension": "opwright.builder.setuptools.command",
    "CUDAExtension": "opwright.builder.setuptools.torch_extension",
    "SyclExtension": "opwright.builder.setuptools.torch_extension",
    "load": "opwright.loader.jit",
    "load_inline": "opwright.loader.jit",
}
_STARTUP = Path(__file__).with_name("startup")


def replace_torchs() -> None:
    """Replace the builder in `torch.utils.cpp_extension` in this process, when the module is first imported."""
    if (module := sys.modules.get(_TORCHS)) is not None:
        _replace(module)
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def replace_in_children() -> None:
    """Do the same in the Python processes that this one starts."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(_STARTUP), *([before] if before else [])])


def _replace(module: ModuleType) -> None:
    for name, home in _HOMES.items():
        setattr(module, name, getattr(importlib.import_module(home), name))


class _Finder(MetaPathFinder):
    """Finds PyTorch's builder once, as Python would, and returns a loader that replaces parts of it with opwright's."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if fullname != _TORCHS:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(Loader):
    def __init__(self, torchs: Loader) -> None:
        self._torchs = torchs

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._torchs.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._torchs.exec_module(module)
        _replace(module)
