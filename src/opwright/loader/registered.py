"""Finds registered operators by name, to describe a library that opwright does not build."""

from __future__ import annotations

import difflib
import fnmatch
import importlib
from typing import TYPE_CHECKING, Any

import torch

from opwright.errors import LoadError, SpecError
from opwright.loader.kernels import names_in, schema_named
from opwright.spec.difference import first_line

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_LISTED = 20
# Namespaces whose operators PyTorch itself registers.
_PYTORCHS = frozenset({"aten", "prims", "quantized", "sparse", "mkldnn", "onednn", "prim"})


def find_registered(names: Sequence[str], imports: Sequence[str]) -> tuple[str, list[str], dict[str, Any]]:
    """Import the modules that register operators, and find the operators.

    Args:
        names: the operators, such as `torchvision::nms` or `torchvision::*`, all in one namespace.
        imports: the modules to import; by default the one with the namespace's name.

    Returns:
        The namespace, the modules, and PyTorch's schema of each operator by its name without the namespace.

    Raises:
        SpecError: a name has no namespace, or the names have several.
        LoadError: a module cannot be imported, or an operator is not registered.
    """
    namespaces = {name.partition("::")[0] for name in names}
    if len(namespaces) > 1 or not all("::" in name for name in names):
        msg = f"expected operators of one namespace, as in torchvision::nms, got {', '.join(names)}"
        raise SpecError(msg)
    (namespace,) = namespaces
    modules = list(imports) or ["torch" if namespace in _PYTORCHS else namespace]
    for module in modules:
        import_operators(module, f"a description of operators of {namespace!r}")
    there = names_in(namespace)
    found: dict[str, Any] = {}
    for name in names:
        pattern = name.partition("::")[2]
        matching = [one for one in there if fnmatch.fnmatchcase(one, pattern)]
        if not matching:
            msg = f"{name} is not registered after importing {', '.join(modules)}. {registered_instead(name)}"
            raise LoadError(msg)
        found |= {one: schema_named(f"{namespace}::{one}") for one in matching}
    return namespace, modules, found


def import_operators(module: str, needed_by: str) -> None:
    """Import a module that registers operators.

    Raises:
        LoadError: it cannot be imported; the message starts with `needed_by`.
    """
    try:
        importlib.import_module(module)
    except Exception as error:
        msg = (
            f"{needed_by} needs the module {module!r}, which cannot be imported: {first_line(error)}. Install it for "
            f"this Python and PyTorch {torch.__version__}, add its folder to PYTHONPATH, or name another module"
        )
        raise LoadError(msg) from error


def registered_instead(qualified_name: str) -> str:
    """A sentence that lists the registered operators with the most similar names."""
    namespace, _, name = qualified_name.partition("::")
    there = names_in(namespace)
    similar = [one for one in there if one.partition(".")[0] == name] or difflib.get_close_matches(name, there)
    if similar:
        return f"Registered with a similar name: {', '.join(similar)}"
    more = f" and {len(there) - _MOST_LISTED} more" if len(there) > _MOST_LISTED else ""
    return f"Registered in {namespace!r}: {', '.join(there[:_MOST_LISTED]) or 'nothing'}{more}"
