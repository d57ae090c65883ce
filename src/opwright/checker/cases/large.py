"""A call with a tensor of more than 2**31 bytes, or 2**31 elements on a GPU, if memory allows."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import torch

from opwright.checker.cases.case import LARGE_BYTES, Case, Family
from opwright.checker.cases.free_memory import bytes_free
from opwright.checker.cases.samples import by_size, redrawn
from opwright.checker.cases.sizes import SizeSlot, size_slots
from opwright.spec import Make, derive
from opwright.spec.expected import call_results

if TYPE_CHECKING:
    from opwright.spec import Op

# The memory for both results and intermediate tensors, in multiples of the largest tensor. The arguments and their
# copy for the call are counted separately.
_FURTHER = 4
_LARGEST_SIZE = 2 * LARGE_BYTES
_GIB = 2**30


def extent(device: str) -> str:
    """The limit that a large call exceeds, in words: threads of a GPU kernel count elements."""
    return "2^31 elements" if device == "cuda" else "2^31 bytes"


def large_case(op: Op, given: list[Case], device: str, seed: int) -> tuple[Case | None, str]:
    """Increase one size of a sample of `given` until a tensor exceeds 2**31 bytes, or 2**31 elements on a GPU.

    On a GPU, results must grow with that size, because a sum over it would not round like the reference's.

    Returns:
        The case and an empty reason, or None and the reason.
    """
    left_out = f"no call with more than {extent(device)} was tried"
    if any(other.gradient is not None and other.gradient.op is op for other in op.library.ops.values()):
        return None, f"{left_out}: the samples of a gradient also contain results, and would need too much memory"
    # Small elements first: there are more of them, with larger indices.
    dtype = min((torch.float32, *op.dtypes), key=lambda dtype: dtype.itemsize)
    for at in by_size(given):
        for slot in size_slots(op, device, seed):
            size = _size_that_is_large(op, at, slot, dtype, device)
            if size is None or (device == "cuda" and not _do_results_grow(op, at, slot, dtype, size)):
                continue
            shaped = derive.tensors(_shaped(op, at, slot, dtype, size))
            largest = max(tensor.nbytes for tensor in shaped)
            needed, free = 2 * sum(tensor.nbytes for tensor in shaped) + _FURTHER * largest, bytes_free(device)
            if free < needed:
                return None, f"{left_out}: it needs {needed / _GIB:.1f} GiB of memory, {free / _GIB:.1f} GiB are free"
            make = Make(seed=seed, dtype=dtype, device=device, most_elements=largest, **slot.resized(size))
            made = redrawn(op, make, at + 1)
            if len(made) > at:
                name = f"{given[at].name}, {slot.name} as {size}: more than {extent(device)}"
                return Case(name, Family.FAR, made[at]), ""
    return None, f"{left_out}: no size in the samples makes such a tensor"


def _shaped(op: Op, at: int, slot: SizeSlot, dtype: torch.dtype, size: int) -> dict[str, Any] | None:
    """The arguments of a sample with another size, on the meta device; None if its function does not support it."""
    made = redrawn(op, Make(dtype=dtype, device="meta", **slot.resized(size)), at + 1)
    return made[at] if len(made) > at else None


def _do_results_grow(op: Op, at: int, slot: SizeSlot, dtype: torch.dtype, size: int) -> bool:
    """Whether the reference's results are larger at `size` than at half of it; False if unknown."""
    counts = []
    with contextlib.suppress(Exception):
        for tried in (size // 2, size):
            positional, keywords = op.spread(_shaped(op, at, slot, dtype, tried) or {})
            results = call_results(op, op.reference(*positional, **keywords), {})
            counts.append(sum(tensor.numel() for tensor in derive.tensors(results)))
    return len(counts) > 1 and counts[1] > counts[0]


def _size_that_is_large(op: Op, at: int, slot: SizeSlot, dtype: torch.dtype, device: str) -> int | None:
    """The smallest size that makes a tensor of the sample large on the device; None if there is none."""

    def is_large(size: int) -> bool:
        shaped = derive.tensors(_shaped(op, at, slot, dtype, size))
        return any((tensor.numel() if device == "cuda" else tensor.nbytes) > LARGE_BYTES for tensor in shaped)

    high = max(slot.default, 1)
    while not is_large(high):
        if high > _LARGEST_SIZE:
            return None
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_large(middle) else (middle, high)
    return high
