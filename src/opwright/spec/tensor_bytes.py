"""Compares the bytes of tensors."""

from __future__ import annotations

import torch
from torch import Tensor


def bytes_equal(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors of the same shape and dtype have the same bytes; a NaN equals itself."""
    return torch.equal(*map(_bytes, (one, other)))


def _bytes(tensor: Tensor) -> Tensor:
    flat = tensor.detach().resolve_conj().resolve_neg().contiguous()
    # A tensor of one element may have any stride.
    return flat.as_strided((flat.numel(),), (1,)).view(torch.uint8)
