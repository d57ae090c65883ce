"""Keeps the dispatcher's entries of replaced operators, because handles in the process refer to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import torch

from opwright.loader.kernels import schema_named

if TYPE_CHECKING:
    from collections.abc import Iterable

# A registration for a device that no PyTorch supports: it does not affect calls, and keeps the operator's entry alive.
_UNUSED_DEVICE = "FPGA"

_kept: set[str] = set()
_libraries: dict[str, torch.library.Library] = {}
# TorchScript's operators, to which the nodes of graphs point, by the functions that hold them.
_script_operators: list[Any] = []


def keep_entries(names: Iterable[str]) -> None:
    """Keep the dispatcher's and TorchScript's entries of the operators `names` for the lifetime of the process.

    Without this, a handle that outlives the operator's definition refers to freed memory. With it, the handle has no
    schema until the operator is defined again; then it calls the new code.
    """
    for name in names:
        namespace, _, operator = name.partition("::")
        _script_operators.append(torch._C._jit_get_operation(name.partition(".")[0]))
        if name in _kept:
            continue
        if namespace not in _libraries:
            _libraries[namespace] = torch.library.Library(namespace, "IMPL")
        _libraries[namespace].impl(operator, _unavailable, _UNUSED_DEVICE)
        _kept.add(name)


def kept_without_schema() -> set[str]:
    """The operators whose entries are kept but that are not defined."""
    return {name for name in _kept if schema_named(name) is None}


def _unavailable(*_args: object, **_kwargs: object) -> NoReturn:
    msg = f"there is no kernel for the device {_UNUSED_DEVICE}"
    raise NotImplementedError(msg)
