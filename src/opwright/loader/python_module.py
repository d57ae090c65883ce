"""Imports Python modules from shared objects, each build as a new module."""

from __future__ import annotations

import ctypes
import importlib.util
from typing import TYPE_CHECKING, Any

from opwright.errors import LoadError

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType


def imported_from(path: Path, name: str) -> ModuleType:
    """The Python module `name` from the shared object at `path`.

    Raises:
        LoadError: the file name is not valid for a Python module.
        ImportError: it cannot be imported.
    """
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        msg = f"{path} cannot be imported: expected the file name of a Python module, which ends in .so"
        raise LoadError(msg)
    _have_pybind11_forget(name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _have_pybind11_forget(name: str) -> None:
    """Make pybind11 create a new module with this name. Otherwise it would return the first one, which it keeps."""
    api = ctypes.pythonapi
    api.PyInterpreterState_Get.restype = ctypes.c_void_p
    api.PyInterpreterState_GetDict.argtypes = (ctypes.c_void_p,)
    api.PyInterpreterState_GetDict.restype = ctypes.c_void_p  # a borrowed reference; py_object would own it
    state: dict[str, Any] = ctypes.cast(
        api.PyInterpreterState_GetDict(api.PyInterpreterState_Get()), ctypes.py_object
    ).value
    state.get("__pybind11_module_cache", {}).pop(name, None)
