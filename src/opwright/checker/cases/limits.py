"""Finds the limits of what a reference accepts, such as the largest size; a kernel must have the same limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opwright.checker.cases.options import given
from opwright.checker.cases.samples import MOST_DRAWN, redrawn
from opwright.spec import Make

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opwright.checker.cases.case import Case
    from opwright.checker.cases.cost import Costs
    from opwright.checker.cases.sizes import SizeSlot
    from opwright.checker.cases.variation import Variation
    from opwright.spec import Op

# No limit of a size or count is expected beyond 32 bits.
_FARTHEST = 2**31


def limits(accepts: Callable[[int], bool | None], start: int, farthest: int) -> list[int]:
    """Find the last accepted number between `start` and `farthest`, and the next one, which is rejected.

    Args:
        accepts: returns whether a number is accepted; None if unknown.
        start: a number that is accepted.
        farthest: the number at which to stop, on either side of `start`.

    Returns:
        The two numbers; empty if `farthest` is accepted, or if it is unknown whether a number is.
    """
    side = 1 if farthest > start else -1
    accepted, rejected = 0, abs(farthest - start)
    if not rejected or accepts(farthest) is not False:
        return []
    while rejected - accepted > 1:
        # The distance is halved until a number is accepted.
        middle = (accepted + rejected) // 2
        verdict = accepts(start + side * middle)
        if verdict is None:
            return []
        accepted, rejected = (middle, rejected) if verdict else (accepted, middle)
    return [start + side * accepted, start + side * rejected]


def integer_limits(case: Case, costs: Costs) -> Iterator[Variation]:
    """Yield the limits of each integer argument of `case`."""
    for name, value in case.arguments.items():
        if type(value) is not int:
            continue

        def accepts(number: int, name: str = name) -> bool | None:
            return costs.accepts({**case.arguments, name: number})

        for farthest in (-_FARTHEST, _FARTHEST):
            yield from (given(name, number) for number in limits(accepts, value, farthest) if number != value)


def size_limits(
    op: Op, at: int, slots: list[SizeSlot], costs: Costs, device: str, seed: int
) -> Iterator[dict[SizeSlot, int]]:
    """Yield the limits of each size in the sample with index `at`."""
    for slot in slots:

        def accepts(size: int, slot: SizeSlot = slot) -> bool | None:
            # On the meta device, because rejected sizes may be too large for memory.
            made = redrawn(op, Make(seed=seed, device="meta", **slot.resized(size)), at + 1, MOST_DRAWN)
            return costs.accepts(made[at], device) if len(made) > at else None

        for farthest in (0, _FARTHEST):
            yield from ({slot: size} for size in limits(accepts, slot.default, farthest))
