"""The memory of tensors: which tensors share it, and whether it holds the same bytes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from opwright.spec import derive


def address(tensor: Tensor) -> int:
    """The address of the tensor's storage, which is the same for tensors that share memory."""
    return int(tensor.untyped_storage()._cdata)


def storages(tree: Any) -> list[Tensor]:
    """The memory of all tensors in `tree`, as flat tensors of their dtypes; each once."""
    found: dict[int, Tensor] = {}
    for tensor in derive.tensors(tree):
        storage = tensor.untyped_storage()
        flat = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
        found.setdefault(address(tensor), flat.set_(storage, 0, (storage.nbytes() // tensor.itemsize,), (1,)))
    return list(found.values())


def bytes_equal(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors of one shape and dtype have the same bytes: a NaN equals itself."""
    return torch.equal(*map(_bytes, (one, other)))


def _bytes(tensor: Tensor) -> Tensor:
    flat = tensor.detach().resolve_conj().resolve_neg().contiguous()
    # One element may have any stride.
    return flat.as_strided((flat.numel(),), (1,)).view(torch.uint8)
