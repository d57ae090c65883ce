"""Stopping rules: when a measurement has enough rounds."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


class StoppingRule(Protocol):
    """Decides when the rounds of a measurement stop."""

    def ended(self, times: Collection[Sequence[float]], seconds: float) -> str:
        """Why the rounds stop now; empty to continue.

        Args:
            times: for each row, the time of one call in every round so far.
            seconds: the duration of the rounds so far, over all rows.
        """


@dataclass(frozen=True)
class RoundsRule:
    """A fixed number of rounds.

    Attributes:
        rounds: the number of rounds.
    """

    rounds: int

    def __str__(self) -> str:
        return f"{self.rounds} rounds"

    def ended(self, times: Collection[Sequence[float]], seconds: float) -> str:  # noqa: ARG002  the protocol's signature
        """Stop after the last round."""
        return str(self) if _rounds(times) >= self.rounds else ""


@dataclass(frozen=True)
class SpreadRule:
    """Continue until the median of every row is stable, or the time is used up.

    A median is stable if the interquartile range divided by the square root of the number of rounds is a small
    fraction of it. The notch of a box plot (McGill, Tukey and Larsen 1978) extends 1.57 times as far to either side.

    Attributes:
        seconds: the time limit for the rounds, over all rows.
        spread: that fraction of the median.
        rounds: the minimum number of rounds, if the time allows.
        least: the minimum number of rounds even when the time is used up: with fewer there are no quartiles.
    """

    seconds: float = 2.0
    spread: float = 0.01
    rounds: int = 20
    least: int = 5

    def __str__(self) -> str:
        return f"medians stable to {100 * self.spread:g} %, or {self.seconds:g} s"

    def ended(self, times: Collection[Sequence[float]], seconds: float) -> str:
        """Stop when all medians are stable, or the time is used up."""
        rounds = _rounds(times)
        if rounds < self.least:
            return ""
        # Quartiles require sorting, which after each of many short rounds would take longer than the rounds.
        is_evaluated = rounds >= self.rounds and rounds % max(1, rounds // 10) == 0
        if is_evaluated and all(relative_error(row) < self.spread for row in times):
            return f"every median is stable to {100 * self.spread:g} %"
        return f"the {self.seconds:g} s were used up" if seconds >= self.seconds else ""


def relative_error(times: Sequence[float]) -> float:
    """The interquartile range of two or more `times` over the square root of their number, relative to their median."""
    low, middle, high = statistics.quantiles(times, method="inclusive")
    return (high - low) / math.sqrt(len(times)) / middle


def _rounds(times: Collection[Sequence[float]]) -> int:
    return min(map(len, times), default=0)
