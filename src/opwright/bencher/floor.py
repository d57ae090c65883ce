"""The floor of an operator: the work that no implementation can avoid, from op.py or a copy of the bytes to move."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from opwright.bencher.rows import Turns
from opwright.report.format import format_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from opwright.bencher.contents import Contents
    from opwright.bencher.result import Direction
    from opwright.bencher.subject import Subject
    from opwright.spec.sweep import FloorDirection

# The parts of each direction.
PARTS: dict[Direction, tuple[FloorDirection, ...]] = {
    "forward": ("forward",),
    "recorded": ("forward",),
    "backward": ("backward",),
    "both": ("forward", "backward"),
}


@dataclass(frozen=True)
class FloorRow:
    """The floor of a direction.

    Attributes:
        what: its description.
        row: how to time it.
        is_stated: whether the author stated the whole floor; otherwise a part of it is a copy.
    """

    what: str
    row: Turns
    is_stated: bool


def floor_of(contents: Contents, direction: Direction) -> FloorRow:
    """The floor of a direction; like the other rows, its calls alternate between the sets of arguments."""
    subject = contents.subjects[0]
    parts = [_part(contents, part) for part in PARTS[direction]]
    words = " and ".join(dict.fromkeys(part.what for part in parts))
    sources = [source for part in parts for source in part.sources]

    def renew() -> None:
        contents.renew()
        for source in sources:
            source.fill_(1)

    calls = [_in_turn(each) for each in zip(*(part.calls for part in parts), strict=True)]
    is_stated = all(part in subject.op.floors for part in PARTS[direction])
    return FloorRow(words, Turns(calls, renew), is_stated)


def bytes_of(subject: Subject, direction: Direction) -> int:
    """The number of bytes that a direction must read and write."""
    return sum(_bytes(subject, part) for part in PARTS[direction])


@dataclass(frozen=True)
class _Part:
    """The floor of the forward or the backward: a call for each set of arguments, and the tensors that copies read."""

    what: str
    calls: Sequence[Callable[[], Any]]
    sources: list[Tensor]


def _part(contents: Contents, part: FloorDirection) -> _Part:
    subject = contents.subjects[0]
    floor = subject.op.floors.get(part)
    if floor is None:
        count = _bytes(subject, part)
        sources, copies = _copies(count, len(contents.subjects), subject.device)
        return _Part(f"a copy that moves {format_bytes(count)}", copies, sources)
    spread = [one.op.spread(one.arguments) for one in contents.subjects]
    calls = [functools.partial(floor.function, *positional, **keywords) for positional, keywords in spread]
    return _Part(floor.what, calls, [])


def _in_turn(calls: Sequence[Callable[[], Any]]) -> Callable[[], Any]:
    """A call that makes all of `calls` in order."""
    if len(calls) == 1:
        return calls[0]

    def in_turn() -> None:
        for call in calls:
            call()

    return in_turn


def tensors_read(subject: Subject, part: FloorDirection) -> list[Tensor]:
    """The tensors that a part reads."""
    return subject.tensors_in if part == "forward" else [*subject.gradients.incoming, *subject.tensors_in]


def bytes_of_all(tensors: Sequence[Tensor]) -> int:
    """The bytes of all `tensors`; an expanded tensor counts only its memory."""
    return sum(min(tensor.nbytes, tensor.untyped_storage().nbytes()) for tensor in tensors)


def _bytes(subject: Subject, part: FloorDirection) -> int:
    """The bytes of all tensors that are read or written, without duplicates and without intermediate results."""
    written = subject.tensors_out if part == "forward" else subject.gradients.leaves
    return bytes_of_all([*tensors_read(subject, part), *written])


def _copies(count: int, sets: int, device: str) -> tuple[list[Tensor], list[Callable[[], Any]]]:
    """Copies that read half of `count` bytes and write the other half; at small sizes they stay within the cache.

    Copies are timed in the same rounds as the other rows, and so with the same memory bandwidth. Each reads different
    memory, as the calls of a row do; all write to the same memory, because a freed result's memory is reused.

    Returns:
        The tensors that they read, which must be rewritten before each block like the arguments, and the copies.
    """
    half = max(1, count // 2)
    target = torch.ones(half, dtype=torch.uint8, device=device)
    sources = [torch.ones_like(target) for _ in range(sets)]
    return sources, [functools.partial(target.copy_, source) for source in sources]
