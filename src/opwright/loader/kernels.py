"""Queries the dispatcher for the registrations of an operator."""

from __future__ import annotations

import re

import torch


def has_native_kernel(qualified_name: str, device: str) -> bool:
    """Whether the operator has a native kernel (not one in Python) for the device, or for every device."""
    table = torch._C._dispatch_dump(qualified_name)
    keys = f"{device.upper()}|CompositeExplicitAutograd|CompositeImplicitAutograd"
    places = re.findall(rf"^(?:{keys})(?:\[alias\])?: registered at (\S+)", table, flags=re.MULTILINE)
    return any(".py:" not in place for place in places)


def native_schemas(namespace: str) -> list[str]:
    """The schemas of the operators of `namespace` that are defined in native code, as PyTorch prints them, sorted."""
    schemas = [str(schema) for schema in torch._C._jit_get_all_schemas() if schema.name.startswith(f"{namespace}::")]  # noqa: SLF001  it has no public name
    return sorted(schema for schema in schemas if _is_native(schema.partition("(")[0]))


def _is_native(qualified_name: str) -> bool:
    table = torch._C._dispatch_dump(qualified_name)
    return not re.search(r"^debug: registered at \S+\.py:", table, flags=re.MULTILINE)
