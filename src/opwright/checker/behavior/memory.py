"""Detects results in shared or freed memory, and measures the memory in use."""

from __future__ import annotations

import ctypes
import gc
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from opwright.spec import derive

if TYPE_CHECKING:
    from collections.abc import Sequence

# The number of allocations: the allocator may return other chunks of that size first.
_TRIES = 16
_MORE_TRIES = 1024
_MOST_BYTES = 2**23
# The sizes of glibc's chunks are multiples of this many bytes.
_GRAIN = 16

# Typed here and not at the call, because that allocates memory, possibly the freed memory to find.
_libc = ctypes.CDLL(None)
_libc.malloc.restype = ctypes.c_void_p
_libc.malloc.argtypes = [ctypes.c_size_t]
_libc.free.argtypes = [ctypes.c_void_p]


def address_range(tensor: Tensor) -> range:
    """The address range of the elements of `tensor`, including gaps between them."""
    if tensor.numel() == 0 or tensor.device.type == "meta":
        return range(0)
    span = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return range(tensor.data_ptr(), tensor.data_ptr() + span * tensor.element_size())


def overlap(one: range, other: range) -> bool:
    """Whether two ranges of addresses overlap."""
    return one.start < other.stop and other.start < one.stop


def shares_memory(results: Sequence[Any], arguments: Any) -> bool:
    """Whether a tensor among `results` shares memory with one among `arguments`."""
    taken = [address_range(tensor) for tensor in derive.tensors(arguments)]
    return any(overlap(address_range(result), span) for result in derive.tensors(list(results)) for span in taken)


def is_freed(results: Sequence[Any]) -> bool:
    """Whether the allocator returns memory that a tensor among `results` still uses."""
    for result in derive.tensors(list(results)):
        span = address_range(result)
        if len(span) and result.device.type == "cpu" and _is_handed_out(span):
            return True
    return False


def _is_handed_out(span: range) -> bool:
    count = len(span)
    # A few allocations first, with no other allocation in between: after a larger request, even from a growing list,
    # the allocator merges small free chunks, and the wanted one is then far down its lists. Chunks of the next size are
    # included because glibc returns a whole chunk if only 16 bytes would remain.
    given = [(_libc.malloc(size), size) for size in (count, count + _GRAIN) for _ in range(_TRIES)]
    # Smaller chunks too: part of the freed memory may be in use already.
    given += [
        (_libc.malloc(size), size)
        for size in (count, count // 2, count // 8)
        for _ in range(max(_TRIES, min(_MORE_TRIES, _MOST_BYTES // max(size, 1))))
    ]
    fresh = [torch.empty(count, dtype=torch.uint8) for _ in range(_TRIES)]
    spans = [range(start, start + size) for start, size in given if start] + [address_range(tensor) for tensor in fresh]
    for start, _ in given:
        _libc.free(start)
    return any(overlap(span, other) for other in spans)


def same_bytes(one: Tensor, other: Tensor) -> bool:
    """Whether the storages of two tensors contain the same bytes; NaN equals itself."""
    if one.device.type == "meta":
        return True
    mine, its = one.untyped_storage(), other.untyped_storage()
    flat = [torch.empty(0, dtype=torch.uint8, device=one.device).set_(storage) for storage in (mine, its)]
    return torch.equal(*flat)


class _MallocInfo(ctypes.Structure):
    """The result of glibc's mallinfo2 (malloc.h)."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *(
                "arena",
                "ordblks",
                "smblks",
                "hblks",
                "hblkhd",
                "usmblks",
                "fsmblks",
                "uordblks",
                "fordblks",
                "keepcost",
            ),
        )
    ]


def bytes_in_use(*, collect: bool = True) -> int | None:
    """The number of bytes that this process has allocated with malloc and not freed; None if glibc does not report it.

    Args:
        collect: whether to run Python's garbage collector first, which takes a hundred times longer than a short call.
    """
    if collect:
        gc.collect()
    if not hasattr(_libc, "mallinfo2"):
        return None
    _libc.mallinfo2.restype = _MallocInfo
    info = _libc.mallinfo2()
    return int(info.uordblks) + int(info.hblkhd)
