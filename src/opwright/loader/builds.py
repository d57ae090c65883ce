"""Opens builds under the names that are passed to `load`, and opens them again when their sources have changed."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import TYPE_CHECKING

from opwright.loader.reload import Registration, replace_registration
from opwright.loader.shared_object import LOADING, import_module, is_open, open_object

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

_builds: dict[str, Registration] = {}


def open_build(name: str, path: Path, *, is_module: bool) -> ModuleType | None:
    """Open the shared object at `path`, and replace the operators of the one opened earlier under the same name.

    Args:
        name: the name.
        path: the shared object.
        is_module: whether to import it as a Python module of that name.

    Returns:
        The module, a new one for each build.

    Raises:
        LoadError: it cannot be loaded, or another name owns a namespace that it defines.
    """
    with LOADING:
        former = _builds.get(name)
        if former is not None and former.shared_object is not None and is_open(former.shared_object, path):
            return former.module

        def register() -> Registration:
            return _registered(name, path, is_module=is_module)

        if former is None or not former.operators:
            _builds[name] = register()
        else:
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            _builds[name] = replace_registration(former, register, register, (name, content))
        return _builds[name].module


def _registered(name: str, path: Path, *, is_module: bool) -> Registration:
    module = None
    if is_module:
        module, opened = import_module(name, path)
    else:
        opened = open_object(path)

    def again() -> Registration:
        # Does not import it again: Python and pybind11 still have the module and its types.
        return dataclasses.replace(registration, shared_object=open_object(path))

    registration = Registration(opened.operators, opened, None, module, again)
    return registration
