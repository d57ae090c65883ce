"""Gives PyTorch what follows from the references: definitions, fallback kernels, fake kernels, gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from opwright.errors import LoadError
from opwright.loader import bridge
from opwright.loader.gradient import COMPOSITES, register_composite, register_gradient
from opwright.loader.mutation import register_mutation
from opwright.loader.shared_object import check_free
from opwright.spec import derive

if TYPE_CHECKING:
    from opwright.spec import Library, Op

# Runs on every device, the fake one included, that has no kernel of its own.
_ANY_DEVICE = "CompositeExplicitAutograd"

# Registrations last as long as these objects do.
_kept: dict[str, torch.library.Library] = {}
_registered: set[str] = set()


def define(library: Library) -> None:
    """Define the operators of a library that has no native source.

    Raises:
        LoadError: the namespace is taken.
        SpecError: a reference's annotations do not make a schema.
    """
    schemas = library.schemas()
    if library.namespace in _kept:
        return
    check_free([library.namespace], library.root / "op.py")
    kept = torch.library.Library(library.namespace, "DEF")
    for schema in schemas:
        kept.define(schema)
    _kept[library.namespace] = kept


def register(library: Library) -> None:
    """Register what the references of `library` give, wherever nothing native is registered.

    Raises:
        LoadError: what is defined in C++ differs from what op.py says.
    """
    namespace = library.namespace
    if namespace in _registered:
        return
    for op in library.ops.values():
        _compare(op)
    native_gradients = library.sources and any(op.gradient is not None for op in library.ops.values())
    attached = bridge.attach() if native_gradients else False
    for op in library.ops.values():
        _register(op, _fragment(namespace), has_native_gradient=attached and op.gradient is not None)
    _registered.add(namespace)


def _fragment(namespace: str) -> torch.library.Library:
    if namespace not in _kept:
        _kept[namespace] = torch.library.Library(namespace, "FRAGMENT")
    return _kept[namespace]


def _register(op: Op, kept: torch.library.Library, *, has_native_gradient: bool) -> None:
    name = op.qualified_name
    if not torch._C._dispatch_has_kernel_for_dispatch_key(name, _ANY_DEVICE):
        kept.impl(op.name, derive.kernel(op), _ANY_DEVICE)
    torch.library.register_fake(name, derive.fake(op), lib=kept)
    if op.hand_written_vmap is not None:
        torch.library.register_vmap(name, op.hand_written_vmap, lib=kept)
    if op.mutates:
        register_mutation(op, kept)
    elif not op.differentiable:
        # Said, not left to PyTorch's default, which warns when a gradient is asked for.
        kept.impl(op.name, torch.library.fallthrough_kernel, "Autograd")
    elif has_native_gradient:
        register_composite(op, _fragment(COMPOSITES))
    else:
        register_gradient(op, kept)


def _compare(op: Op) -> None:
    """Compare the schema that is registered with the one that the reference gives.

    Raises:
        LoadError: they differ.
    """
    registered = str(torch._C._get_schema(op.qualified_name, ""))
    described = str(torch._C.parse_schema(f"{op.library.namespace}::{op.schema}"))
    if registered != described:
        msg = (
            f"the schema of {op.qualified_name} that is registered differs from what {op.library.root / 'op.py'} "
            f"says:\n  registered: {registered}\n  op.py:      {described}\nBuild the library again, or fix op.py"
        )
        raise LoadError(msg)
