"""What no implementation can avoid: what an author says, or to move the bytes that have to be moved."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from opwright.report.format import of_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from opwright.bencher.result import Direction
    from opwright.bencher.subject import Subject
    from opwright.spec.sweep import FloorDirection

_PARTS: dict[Direction, tuple[FloorDirection, ...]] = {
    "forward": ("forward",),
    "recorded": ("forward",),
    "backward": ("backward",),
    "both": ("forward", "backward"),
}


def floor_of(subject: Subject, direction: Direction) -> tuple[str, Callable[[], Any]]:
    """What the floor of a direction does, in words, and a call that does it."""
    parts = [_part(subject, part) for part in _PARTS[direction]]
    words = " and ".join(dict.fromkeys(words for words, _ in parts))
    calls = [call for _, call in parts]
    if len(calls) == 1:
        return words, calls[0]

    def both() -> None:
        for call in calls:
            call()

    return words, both


def bytes_of(subject: Subject, direction: Direction) -> int:
    """How many bytes a direction has to read and write."""
    return sum(_bytes(subject, part) for part in _PARTS[direction])


def _part(subject: Subject, part: FloorDirection) -> tuple[str, Callable[[], Any]]:
    floor = subject.op.floors.get(part)
    if floor is None:
        count = _bytes(subject, part)
        return f"a copy that moves {of_bytes(count)}", _copy(count, subject.device)
    positional, keywords = subject.op.spread(subject.arguments)
    return floor.what, functools.partial(floor.function, *positional, **keywords)


def _bytes(subject: Subject, part: FloorDirection) -> int:
    """Each tensor once: what is read and what is written, whatever lies between."""
    read: Sequence[Tensor]
    written: Sequence[Tensor]
    if part == "forward":
        read, written = subject.tensors_in, subject.tensors_out
    else:
        given = subject.gradients
        read, written = (*given.incoming, *subject.tensors_in), given.leaves
    return sum(min(tensor.nbytes, tensor.untyped_storage().nbytes()) for tensor in (*read, *written))


def _copy(count: int, device: str) -> Callable[[], Any]:
    """A copy that reads one half of so many bytes and writes the other: at small sizes, from cache to cache.

    It is timed in the rounds of the other rows: bytes over the bandwidth that the machine has there and then.
    """
    half = max(1, count // 2)
    source, target = (torch.ones(half, dtype=torch.uint8, device=device) for _ in range(2))
    return functools.partial(target.copy_, source)
