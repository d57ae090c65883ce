"""Registers everything derived from the references with PyTorch: definitions, kernels, fake kernels, gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from opwright.errors import LoadError
from opwright.loader import bridge
from opwright.loader.gradient import (
    COMPOSITES,
    RECORDINGS,
    register_composite,
    register_gradient,
    register_recording,
)
from opwright.loader.kernels import has_native_kernel, registered_schema
from opwright.loader.mutation import register_mutation, register_refusal
from opwright.loader.shared_object import check_free
from opwright.spec import derive
from opwright.spec.schema import schema_of_text

if TYPE_CHECKING:
    from pathlib import Path

    from opwright.spec import Library, Op

# Runs on every device without a kernel of its own, including the fake one.
_ANY_DEVICE = "CompositeExplicitAutograd"

# Registrations last as long as these objects: by the operators' namespace, and the namespace of the registrations.
_kept: dict[tuple[str, str], torch.library.Library] = {}
_registered: set[str] = set()


def define(library: Library) -> None:
    """Define the operators of a library without native sources.

    Raises:
        LoadError: the namespace is taken.
        SpecError: a reference's annotations do not define a schema.
    """
    schemas = library.schemas()
    if (library.namespace, library.namespace) in _kept:
        return
    check_free([library.namespace], library.root / "op.py")
    kept = torch.library.Library(library.namespace, "DEF")
    for schema in schemas:
        kept.define(schema)
    _kept[library.namespace, library.namespace] = kept


def register(library: Library) -> None:
    """Register everything derived from the references of `library`, unless it is registered natively.

    Raises:
        LoadError: a schema that is defined in C++ differs from the one in op.py.
    """
    namespace = library.namespace
    if namespace in _registered:
        return
    for op in library.ops.values():
        _compare(op)
    native_gradients = library.sources and any(op.gradient is not None for op in library.ops.values())
    attached = bridge.attach() if native_gradients else False
    # Only if it exists: a library without native gradients need not wait for it to be built.
    found = bridge.find_bridge() if library.sources else None
    for op in library.ops.values():
        _register(op, _fragment(op, namespace), found, has_native_gradient=attached and op.gradient is not None)
    _registered.add(namespace)


def unregister(namespace: str) -> None:
    """Undo `define` and `register` for the library of a namespace."""
    bridge.detach(namespace)
    _registered.discard(namespace)
    for key in [key for key in _kept if key[0] == namespace]:
        _kept.pop(key)._destroy()


def _fragment(op: Op, namespace: str) -> torch.library.Library:
    """The object that keeps the registrations for `op` in `namespace`."""
    key = op.library.namespace, namespace
    if key not in _kept:
        _kept[key] = torch.library.Library(namespace, "FRAGMENT")
    return _kept[key]


def _register(op: Op, kept: torch.library.Library, found_bridge: Path | None, *, has_native_gradient: bool) -> None:
    name = op.qualified_name
    for device, function in op.python_kernels.items():
        _require_no_native_kernel(op, device)
        kept.impl(op.name, derive.python_kernel(op, function), device.upper())
    if not torch._C._dispatch_has_kernel_for_dispatch_key(name, _ANY_DEVICE):
        kept.impl(op.name, derive.kernel(op), _ANY_DEVICE)
    torch.library.register_fake(name, derive.fake(op), lib=kept)
    if op.hand_written_vmap is not None:
        torch.library.register_vmap(name, op.hand_written_vmap, lib=kept)
    if op.mutates and found_bridge is not None:
        register_refusal(op, _fragment(op, RECORDINGS))
        bridge.attach_python(op, found_bridge)
    elif op.mutates:
        register_mutation(op, kept)
    elif not op.differentiable:
        # Registered explicitly, because PyTorch's default warns when a gradient is requested.
        kept.impl(op.name, torch.library.fallthrough_kernel, "Autograd")
    elif has_native_gradient:
        register_composite(op, _fragment(op, COMPOSITES))
    elif found_bridge is not None:
        register_recording(op, _fragment(op, RECORDINGS))
        bridge.attach_python(op, found_bridge)
    else:
        register_gradient(op, kept)


def _require_no_native_kernel(op: Op, device: str) -> None:
    """Check that a kernel in Python does not replace one in the sources.

    Raises:
        LoadError: a native kernel for the device exists.
    """
    if has_native_kernel(op.qualified_name, device):
        msg = f"{op.qualified_name} has a kernel for {device} in its sources and one in op.py: keep one of the two"
        raise LoadError(msg)


def _compare(op: Op) -> None:
    """Compare the registered schema with the one of the reference.

    Raises:
        LoadError: they differ.
    """
    registered = str(registered_schema(op))
    described = str(schema_of_text(f"{op.library.namespace}::{op.schema}"))
    if registered != described:
        msg = (
            f"the registered schema of {op.qualified_name} differs from the one in {op.library.root / 'op.py'}:\n"
            f"  registered: {registered}\n  op.py:      {described}\nBuild the library again, or fix op.py"
        )
        raise LoadError(msg)
