"""Delays the arguments of a call on a stream: a kernel that does not wait for that stream reads other values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from opwright.checker.behavior.poison import poisoned
from opwright.checker.cases.memory_contents import MemoryContents

if TYPE_CHECKING:
    from collections.abc import Callable

# How long the GPU waits before the arguments arrive, in clock cycles: tens of milliseconds at one or two GHz. A launch
# takes the CPU microseconds.
_CYCLES = 10**8
# For a call that takes the CPU longer.
_MORE_CYCLES = 10**9


def on_late_stream(call: Callable[[], list[Any]], arguments: dict[str, Any]) -> list[Any]:
    """Run `call` on a stream on which the values of `arguments` arrive late, and return its results.

    Args:
        call: enqueues work on the current stream, and returns its results.
        arguments: what it reads, by name. They contain other values until the real ones arrive.
    """
    contents = MemoryContents(arguments)
    stream = torch.cuda.Stream()
    # A first call loads and allocates, which waits for the GPU: the values would have arrived by then.
    _on_stream(stream, 0, call, contents)
    found, was_late = _on_stream(stream, _CYCLES, call, contents)
    # A call that waits for its stream always returns after the values have arrived.
    return found if was_late else _on_stream(stream, _MORE_CYCLES, call, contents)[0]


def _on_stream(
    stream: torch.cuda.Stream, cycles: int, call: Callable[[], list[Any]], contents: MemoryContents
) -> tuple[list[Any], bool]:
    """Return the results, and whether the call returned before the values arrived."""
    contents.move(1)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        if cycles:
            torch.cuda._sleep(cycles)  # noqa: SLF001  it has no public name
        contents.restore()
        with poisoned():  # memory may still contain the results of an earlier call
            results = call()
        # Work enqueued after the call sees its results as they are at that point of the stream.
        found: list[Any] = pytree.tree_map_only(Tensor, lambda result: result.detach().clone(), results)
        was_late = not stream.query()
    torch.cuda.synchronize()  # not just the stream: a kernel on another one may still use the arguments
    return found, was_late
