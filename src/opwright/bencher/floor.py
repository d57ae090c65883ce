"""The floor of an operator: work that no implementation can avoid, from op.py or a copy of the bytes to move."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from opwright.report.format import format_bytes

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
    """The description of the floor of a direction, and a call that runs it."""
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
    """The number of bytes that a direction has to read and write."""
    return sum(_bytes(subject, part) for part in _PARTS[direction])


def _part(subject: Subject, part: FloorDirection) -> tuple[str, Callable[[], Any]]:
    floor = subject.op.floors.get(part)
    if floor is None:
        count = _bytes(subject, part)
        return f"a copy that moves {format_bytes(count)}", _copy(count, subject.device)
    positional, keywords = subject.op.spread(subject.arguments)
    return floor.what, functools.partial(floor.function, *positional, **keywords)


def _bytes(subject: Subject, part: FloorDirection) -> int:
    """The bytes of all tensors that are read or written, each counted once, without intermediate results."""
    read: Sequence[Tensor]
    written: Sequence[Tensor]
    if part == "forward":
        read, written = subject.tensors_in, subject.tensors_out
    else:
        given = subject.gradients
        read, written = (*given.incoming, *subject.tensors_in), given.leaves
    return sum(min(tensor.nbytes, tensor.untyped_storage().nbytes()) for tensor in (*read, *written))


def _copy(count: int, device: str) -> Callable[[], Any]:
    """A copy that reads half of `count` bytes and writes the other half; at small sizes it stays within the cache.

    It is timed in the same rounds as the other rows, and so with the memory bandwidth that they have.
    """
    half = max(1, count // 2)
    source, target = (torch.ones(half, dtype=torch.uint8, device=device) for _ in range(2))
    return functools.partial(target.copy_, source)
