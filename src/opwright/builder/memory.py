"""Lets g++ use more memory before it collects garbage, which takes 10% of its time with PyTorch's full C++ API."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from opwright.toolchain.compiler import is_gcc

if TYPE_CHECKING:
    from collections.abc import Sequence

# In KiB; a source that includes torch/extension.h requires little more than this without any collection.
_HEAP = ("--param", "ggc-min-heapsize=2097152")
# A process then uses up to 2.5 GiB, and one may run on each processor.
_NEEDED_BYTES = 3 * 2**30


def with_more_memory(command: Sequence[str]) -> tuple[str, ...]:
    """The command line, with a larger heap if g++ compiles PyTorch's full C++ API on a machine with enough memory.

    The heap size does not affect the output of g++.
    """
    words = tuple(command)
    is_full = any(word.endswith("torch/csrc/api/include") for word in words)
    return (words[0], *_HEAP, *words[1:]) if is_full and is_gcc(words) and _has_room() else words


def _has_room() -> bool:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return total >= _NEEDED_BYTES * len(os.sched_getaffinity(0))
