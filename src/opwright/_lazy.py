"""Imports the names of public modules on first use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def names_from(module: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """Return a `__getattr__` for the module `module`.

    Args:
        module: the dotted name of the public module.
        homes: the defining module of each public name.
    """

    def get(name: str) -> object:
        if name not in homes:
            msg = f"module {module!r} has no attribute {name!r}"
            raise AttributeError(msg)
        return getattr(importlib.import_module(homes[name]), name)

    return get
