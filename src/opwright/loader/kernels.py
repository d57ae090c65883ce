"""Queries the dispatcher for the registrations of an operator."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import torch
from torch._library.custom_ops import OPDEFS
from torch._library.simple_registry import singleton as _simple_registry
from torch._subclasses.fake_impls import op_implementations_dict

if TYPE_CHECKING:
    from opwright.spec import Op

_COMPOSITE = "CompositeImplicitAutograd"


def overload_of(op: Op) -> Any:
    """PyTorch's overload of a registered operator: `torch.ops.mine.scale.default`."""
    name, _, overload = op.name.partition(".")
    return getattr(getattr(getattr(torch.ops, op.library.namespace), name), overload or "default")


def registered_schema(op: Op) -> Any:
    """PyTorch's schema of an operator; None if it is not registered."""
    return schema_named(op.qualified_name)


def schema_named(qualified_name: str) -> Any:
    """PyTorch's schema of the operator with that name; None if it is not registered."""
    name, _, overload = qualified_name.partition(".")
    try:
        return torch._C._get_schema(name, overload)
    except RuntimeError:
        return None


def names_in(namespace: str) -> list[str]:
    """The names of all operators in `namespace`, without the namespace, sorted."""
    start = f"{namespace}::"
    return sorted(name.removeprefix(start) for name in operator_names() if name.startswith(start))


def operator_names() -> set[str]:
    """The names of all operators in the dispatcher, with or without a schema."""
    return set(torch._C._dispatch_get_all_op_names())


def has_fake_kernel(op: Op) -> bool:
    """Whether a fake kernel is registered, or a kernel for every device, which can serve as one."""
    name = op.qualified_name
    keys = ("Meta", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional", _COMPOSITE)
    return (
        _simple_registry.find(name).fake_impl.kernel is not None
        or overload_of(op) in op_implementations_dict  # PyTorch's own, for operators with data-dependent results
        or any(torch._C._dispatch_has_kernel_for_dispatch_key(name, key) for key in keys)
    )


def has_kernel(qualified_name: str, device: str) -> bool:
    """Whether a kernel is registered that computes the operator on the device."""
    key = device.upper()
    return bool(torch._C._dispatch_has_computed_kernel_for_dispatch_key(qualified_name, key))  # noqa: SLF001  it has no public name


def is_composite(op: Op) -> bool:
    """Whether PyTorch decomposes the operator into the operators that it calls, so that no graph contains it."""
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(op.qualified_name, _COMPOSITE))


def has_gradient_kernel(qualified_name: str, device: str) -> bool:
    """Whether a gradient is registered: an autograd kernel, or a composition of operators that have gradients."""
    # The autograd kernel of torch.library.custom_op only raises an error until the author registers a gradient.
    if (custom := OPDEFS.get(qualified_name)) is not None:
        return custom._backward_fn is not None
    keys = ("Autograd", f"Autograd{device.upper()}", _COMPOSITE)
    return any(torch._C._dispatch_has_kernel_for_dispatch_key(qualified_name, key) for key in keys)


def has_native_gradient_kernel(op: Op, device: str) -> bool:
    """Whether a gradient is registered in native code."""
    return _is_registered_natively(op.qualified_name, f"Autograd|Autograd{device.upper()}|{_COMPOSITE}")


def has_native_kernel(qualified_name: str, device: str) -> bool:
    """Whether the operator has a native kernel (not a Python one) for the device, or for every device."""
    return _is_registered_natively(
        qualified_name, f"{device.upper()}|CompositeExplicitAutograd(?:NonFunctional)?|{_COMPOSITE}"
    )


def _is_registered_natively(qualified_name: str, keys: str) -> bool:
    table = torch._C._dispatch_dump(qualified_name)
    found = rf"^(?:{keys})(?:\[alias\])?: registered (?:at|by) (\S+)"  # by torch::RegisterOperators
    return any(".py:" not in place for place in re.findall(found, table, flags=re.MULTILINE))


def native_schemas(namespace: str) -> list[str]:
    """The schemas of the operators in `namespace` that native code defines, as PyTorch prints them, sorted."""
    schemas = [str(schema) for schema in torch._C._jit_get_all_schemas() if schema.name.startswith(f"{namespace}::")]  # noqa: SLF001  it has no public name
    return sorted(schema for schema in schemas if _is_native(schema.partition("(")[0]))


def _is_native(qualified_name: str) -> bool:
    table = torch._C._dispatch_dump(qualified_name)
    return not re.search(r"^debug: registered at \S+\.py:", table, flags=re.MULTILINE)
