"""Has the arguments of a call arrive late on a stream: who does not wait for that stream reads other numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from opwright.checker.behavior.poison import poisoned
from opwright.checker.cases.memory_contents import MemoryContents

if TYPE_CHECKING:
    from collections.abc import Callable

# How long the GPU waits before the arguments arrive, in cycles of its clock: tens of milliseconds at one or two GHz. A
# launch takes the processor microseconds.
_CYCLES = 10**8
# For a call that takes the processor longer.
_MORE_CYCLES = 10**9


def on_late_stream(call: Callable[[], list[Any]], arguments: dict[str, Any]) -> list[Any]:
    """What `call` returns on a stream on which the numbers of `arguments` arrive late: until then, they are others.

    Args:
        call: enqueues work on the current stream, and returns its results.
        arguments: what it reads, by name.
    """
    contents = MemoryContents(arguments)
    stream = torch.cuda.Stream()
    # What a first call loads and allocates waits for the GPU itself, and would let the numbers arrive.
    _on_stream(stream, 0, call, contents)
    found, was_late = _on_stream(stream, _CYCLES, call, contents)
    # A call that waits for its stream returns after the numbers have arrived, however long that takes.
    return found if was_late else _on_stream(stream, _MORE_CYCLES, call, contents)[0]


def _on_stream(
    stream: torch.cuda.Stream, cycles: int, call: Callable[[], list[Any]], contents: MemoryContents
) -> tuple[list[Any], bool]:
    """The results, and whether the numbers had not arrived yet when the call returned."""
    contents.move(1)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        if cycles:
            torch.cuda._sleep(cycles)  # noqa: SLF001  it has no public name
        contents.restore()
        with poisoned():  # memory may still contain the results of an earlier call
            results = call()
        # Work that is enqueued behind the call sees its results as they are then.
        found: list[Any] = pytree.tree_map_only(Tensor, lambda result: result.detach().clone(), results)
        was_late = not stream.query()
    torch.cuda.synchronize()  # not only the stream: a kernel elsewhere may still use the arguments
    return found, was_late
