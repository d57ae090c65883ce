"""Detects rows that are faster than the floor allows."""

from __future__ import annotations

import copy
import random
from typing import TYPE_CHECKING, Any

from opwright.bencher.floor import PARTS, bytes_of, bytes_of_all, tensors_read
from opwright.bencher.timer import Spread
from opwright.report.format import format_seconds, three_figures
from opwright.spec import derive
from opwright.spec.tensor_bytes import bytes_equal

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from opwright.bencher.floor import FloorRow
    from opwright.bencher.result import Direction
    from opwright.bencher.subject import Subject
    from opwright.bencher.timer import Timing
    from opwright.spec.sweep import FloorDirection

# A copy writes as much as it reads, which on most processors moves 1.5 times its bytes, while an operator may only
# read; a better matrix product than PyTorch's saves a similar amount. Neither reaches a factor of two.
_LEAST = 0.5
# A shorter floor mostly measures the cost of a PyTorch call, or of launches on a GPU, and an operator's call may cost
# less.
_JUDGED_S = 20e-6
# The number of elements that are changed one by one, to test whether the reference depends on them.
_CHANGED = 16
_ATTEMPTS = 8

_random = random.Random(0)  # noqa: S311  a sample of elements, not a secret


def too_fast(subject: Subject, direction: Direction, floor: FloorRow, timing: Timing, of_floor: Timing) -> str:
    """Why the times of a row are impossible; empty if they are possible.

    The third quartile of its ratio to the floor must be at least one half, in wall time or in processor time: a library
    may use more threads than the floor. If the author did not state the floor, it counts only the bytes that the
    reference demonstrably reads.
    """
    if of_floor.median < _JUDGED_S or of_floor.is_launching:
        return ""
    found = ratio_to_floor(timing, of_floor, with_processor=subject.device == "cpu")
    if found >= _LEAST or (not floor.is_stated and found >= _LEAST * _share_needed(subject, direction)):
        return ""
    return (
        f"faster than the floor: {format_seconds(timing.median)}, which is {three_figures(found)} of the time of "
        f"{floor.what}: the work is done elsewhere or later, or results are reused. If the operator needs less "
        f"work than that, state its floor with @{subject.op.name}.floor"
    )


def ratio_to_floor(timing: Timing, of_floor: Timing, *, with_processor: bool) -> float:
    """The third quartile of the rounds' ratios; with `with_processor`, the larger of wall and processor time counts."""
    ratios = timing.ratios(of_floor)
    if with_processor and timing.processor_times and all(of_floor.processor_times):
        pairs = zip(timing.processor_times, of_floor.processor_times, strict=True)
        ratios = tuple(max(wall, mine / its) for wall, (mine, its) in zip(ratios, pairs, strict=True))
    return Spread.of(ratios).quartiles[1]


def _share_needed(subject: Subject, direction: Direction) -> float:
    """The fraction of the floor's bytes that the reference writes, or demonstrably depends on."""
    needed = 0.0
    for part in PARTS[direction]:
        twin = subject.twin(subject.fresh(), copy.deepcopy(subject.gradients.grads))

        def run(twin: Subject = twin, part: FloorDirection = part) -> list[Tensor]:
            return _outputs(twin, part)

        read = tensors_read(twin, part)
        needed += bytes_of_all(run()) + _share_read(read, run) * bytes_of_all(read)
    return needed / max(1, bytes_of(subject, direction))


def _outputs(subject: Subject, part: FloorDirection) -> list[Tensor]:
    """The values that the reference computes."""
    reference = subject.op.reference
    if part == "forward":
        return derive.tensors(subject.call(reference, subject.fresh()))
    given = subject.gradients
    positional, keywords = subject.op.spread(given.arguments)
    return derive.tensors(given.of(given.select(reference(*positional, **keywords))))


def _share_read(read: list[Tensor], run: Callable[[], list[Tensor]]) -> float:
    """The fraction of the randomly chosen elements of `read` on which the results of `run` depend."""
    sizes = [bytes_of_all([tensor]) for tensor in read]
    if not any(sizes):
        return 0.0
    before = [tensor.clone() for tensor in run()]
    seen = 0
    for tensor in _random.choices(read, sizes, k=_CHANGED):
        element = tensor[_place(tensor)]
        kept = element.clone()
        other = _other_value(tensor, kept)
        if other is None:
            continue
        element.copy_(other)
        seen += _differ(before, run)
        element.copy_(kept)
    return seen / _CHANGED


def _differ(before: list[Tensor], run: Callable[[], list[Tensor]]) -> bool:
    """Whether `run` now computes different results; an exception does not count as a result."""
    try:
        after = run()
    except Exception:
        return False
    return any(
        one.shape != other.shape or not bytes_equal(one, other) for one, other in zip(before, after, strict=True)
    )


def _place(tensor: Tensor) -> tuple[int, ...]:
    return tuple(_random.randrange(size) for size in tensor.shape)


def _other_value(tensor: Tensor, value: Tensor) -> Any:
    """The value of another element, which is equally valid; None if all candidates are equal."""
    others = (tensor[_place(tensor)].clone() for _ in range(_ATTEMPTS))
    return next((other for other in others if not bytes_equal(other, value)), None)
