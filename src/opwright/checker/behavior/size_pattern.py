"""Detects a skipped remainder of a vector loop by the sizes at which an operator is wrong."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from opwright.checker.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opwright.checker.cases.case import Case
    from opwright.checker.verdict import Failure

_WIDTHS = (4, 8, 16, 32, 64)
_FEWEST = 2  # right sizes that are multiples of the width


class SizePattern:
    """The sizes at which results were right and wrong."""

    def __init__(self) -> None:
        self._right: dict[str, set[int]] = {}
        self._wrong: dict[str, dict[int, Failure]] = {}

    def add(self, case: Case, fault: Failure | None) -> None:
        """Record the outcome of a case that varies one size; other cases are ignored."""
        if case.size is None:
            return
        name, size = case.size
        if fault is None:
            self._right.setdefault(name, set()).add(size)
        elif self.holds(case, fault):
            self._wrong.setdefault(name, {})[size] = fault

    def holds(self, case: Case, fault: Failure) -> bool:
        """Whether the kind of `fault` depends on other sizes; `faults` then yields it."""
        return case.size is not None and fault.kind in (Kind.SIZE, Kind.TAIL)

    def faults(self) -> Iterator[Failure]:
        """Yield the first fault of each varied size, with the kind that the sizes indicate."""
        for name, wrong in self._wrong.items():
            first = wrong[min(wrong)]
            at_end = all(fault.kind is Kind.TAIL for fault in wrong.values()) and any(
                size % min(_WIDTHS) for size in wrong
            )
            kind = Kind.TAIL if at_end or is_tail(self._right.get(name, set()), set(wrong)) else Kind.SIZE
            yield dataclasses.replace(first, kind=kind)


def is_tail(right: set[int], wrong: set[int]) -> bool:
    """Whether results are right at multiples of a vector width and wrong at all other sizes."""

    def fits(width: int) -> bool:
        whole = [size for size in right if size and size % width == 0]
        return (
            len(whole) >= _FEWEST
            and all(size % width for size in wrong)
            and all(size % width == 0 or size < width for size in right)
        )

    return any(map(fits, _WIDTHS))
