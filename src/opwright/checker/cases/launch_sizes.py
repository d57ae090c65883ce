"""Sizes beyond the limits of one launch of a CUDA kernel."""

from __future__ import annotations

# The maximum number of threads in a block, and of blocks in the second and third dimension of a grid.
_THREADS = 1024
_BLOCKS = 65535
# The maximum shared memory of a block in bytes: by default, and by opt-in on an H100.
_SHARED = (48 * 1024, 227 * 1024)


def launch_sizes(itemsize: int) -> tuple[int, ...]:
    """Odd sizes just beyond each limit of a launch, in ascending order, for elements of `itemsize` bytes."""
    limits = (_THREADS, _BLOCKS, *(nbytes // itemsize for nbytes in _SHARED))
    return tuple(sorted({(limit + 1) | 1 for limit in limits}))
