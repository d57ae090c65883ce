"""Sizes beyond what one launch of a CUDA kernel may ask for."""

from __future__ import annotations

# The most threads of a block, and the most blocks of a grid in its second and third dimension.
_THREADS = 1024
_BLOCKS = 65535
# The most shared memory of a block, by default and on request, in bytes. With more on request, an H100 has none left.
_SHARED = (48 * 1024, 227 * 1024)


def launch_sizes(itemsize: int) -> tuple[int, ...]:
    """Odd sizes just beyond each limit of a launch, the smallest first, for elements of `itemsize` bytes."""
    limits = (_THREADS, _BLOCKS, *(nbytes // itemsize for nbytes in _SHARED))
    return tuple(sorted({(limit + 1) | 1 for limit in limits}))
