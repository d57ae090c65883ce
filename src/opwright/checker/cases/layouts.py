"""Copies of a tensor with other memory layouts."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from opwright.checker.cases.case import Family

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_OFFSET = 3
_MATRIX = 2
_IMAGE_BATCH = 4  # dimensions of (N, C, H, W)
# A distance beyond 32 bits, and the number of rows that are touched.
_FAR_ELEMENTS = 2**31 + 64
_FAR_ROWS = 512


def layouts(tensor: Tensor, *, is_mutated: bool = False) -> Iterator[tuple[str, Family, Callable[[Tensor], Tensor]]]:
    """Yield (name, family, function that applies it) for each non-contiguous layout.

    Args:
        tensor: the tensor.
        is_mutated: whether the operator writes to it; if so, no layout has elements that share memory.
    """
    if tensor.numel() == 0 or tensor.dim() == 0:
        return
    if tensor.dim() > 1:
        yield "transposed", Family.STRIDES, lambda x: x.transpose(-2, -1).contiguous().transpose(-2, -1)
        yield "in a part of wider rows", Family.STRIDES, _padded
    if tensor.dim() > _MATRIX:
        yield "with dimensions in reverse", Family.STRIDES, _reversed
    yield "every second element", Family.STRIDES, _strided
    if 1 in tensor.shape:
        yield "with other strides of dimensions of 1", Family.STRIDES, _singular
    if not is_mutated:
        yield from _self_overlapping(tensor)
    if tensor.dim() == _IMAGE_BATCH:
        yield "channels last", Family.STRIDES, lambda x: x.contiguous(memory_format=torch.channels_last)
    yield "with a storage offset", Family.OFFSET, _offset
    if tensor.is_complex():
        yield "as a conjugate view", Family.STRIDES, lambda x: x.conj().resolve_conj().conj()
    if tensor.is_complex() or tensor.is_floating_point():
        yield "as a negative view", Family.STRIDES, lambda x: torch._neg_view(-x)  # noqa: SLF001  it has no public name


def _self_overlapping(tensor: Tensor) -> Iterator[tuple[str, Family, Callable[[Tensor], Tensor]]]:
    """Yield layouts in which elements share memory; PyTorch itself rejects most writes to them."""
    if tensor.shape[0] > 1:
        yield "expanded", Family.STRIDES, lambda x: x[:1].clone().expand(x.shape)
    if tensor.dim() > 1 and tensor.shape[-1] > 1:
        yield "expanded in the last dimension", Family.STRIDES, lambda x: x[..., :1].clone().expand(x.shape)
    if tensor.dim() > 1 and tensor.shape[0] > 1:
        yield "with overlapping rows", Family.STRIDES, _overlapping


def far_apart(tensor: Tensor) -> Tensor | None:
    """The same values, with rows of the first dimension more than 2**31 elements apart; None if impossible.

    The memory between the rows is never touched, so the system never allocates it.
    """
    rows = tensor.shape[0] if tensor.dim() else 0
    if tensor.device.type != "cpu" or not 1 < rows <= _FAR_ROWS or tensor.numel() == 0:
        return None
    dense = tensor.contiguous()
    row = dense.stride(0)
    step = max(_FAR_ELEMENTS // (rows - 1) + 1, row)
    size = (rows - 1) * step + row
    try:
        memory = mmap.mmap(-1, size * tensor.element_size(), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE)
    except (OSError, ValueError, OverflowError):  # no address space, for example because of a container's limit
        return None
    storage = torch.frombuffer(memory, dtype=torch.uint8).view(tensor.dtype)
    far = storage.as_strided(tensor.shape, (step, *dense.stride()[1:]))
    return far.copy_(tensor)


# Python's module lacks it before 3.13; this is the value in the Linux kernel.
_NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)


def _filled(size: tuple[int, ...], like: Tensor) -> Tensor:
    """Memory filled with conspicuous values: NaN, or the largest integer."""
    if like.is_floating_point() or like.is_complex():
        return torch.full(size, float("nan"), dtype=like.dtype, device=like.device)
    value = True if like.dtype == torch.bool else torch.iinfo(like.dtype).max
    return torch.full(size, value, dtype=like.dtype, device=like.device)


def _padded(tensor: Tensor) -> Tensor:
    wide = _filled((*tensor.shape[:-1], tensor.shape[-1] + _OFFSET), tensor)
    view = wide[..., : tensor.shape[-1]]
    view.copy_(tensor)
    return view


def _singular(tensor: Tensor) -> Tensor:
    """A contiguous tensor with other strides of dimensions of size 1, such as 1 for the channel of a gray image."""
    dense = tensor.clone(memory_format=torch.contiguous_format)
    pairs = zip(tensor.shape, dense.stride(), strict=True)
    return dense.as_strided(tensor.shape, [stride if size > 1 else 1 + (stride == 1) for size, stride in pairs])


def _reversed(tensor: Tensor) -> Tensor:
    order = tuple(range(tensor.dim() - 1, -1, -1))
    return tensor.permute(order).contiguous().permute(order)


def _overlapping(tensor: Tensor) -> Tensor:
    """Rows that start one element apart, as in a sliding window; the values change."""
    row = tensor[0].clone(memory_format=torch.contiguous_format)
    memory = torch.cat([row.flatten(), tensor[1:].flatten()])
    return memory.as_strided(tensor.shape, (1, *row.stride()))


def _strided(tensor: Tensor) -> Tensor:
    wide = _filled((*tensor.shape[:-1], 2 * tensor.shape[-1]), tensor)
    view = wide[..., ::2]
    view.copy_(tensor)
    return view


def _offset(tensor: Tensor) -> Tensor:
    wide = _filled((tensor.numel() + _OFFSET,), tensor)
    view = wide[_OFFSET:].view(tensor.shape)
    view.copy_(tensor)
    return view
