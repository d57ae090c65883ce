"""The memory of tensors, and which tensors share it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from opwright.spec import derive


def address(tensor: Tensor) -> int:
    """The address of the tensor's storage, which is the same for tensors that share memory."""
    return int(tensor.untyped_storage()._cdata)


def storages(tree: Any) -> list[Tensor]:
    """The memory of all tensors in `tree`, as flat tensors of their dtypes, without duplicates."""
    found: dict[int, Tensor] = {}
    for tensor in derive.tensors(tree):
        storage = tensor.untyped_storage()
        flat = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
        found.setdefault(address(tensor), flat.set_(storage, 0, (storage.nbytes() // tensor.itemsize,), (1,)))
    return list(found.values())
