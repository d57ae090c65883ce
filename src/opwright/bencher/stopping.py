"""When a measurement has enough rounds: the rules, by name."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


class StoppingRule(Protocol):
    """Says when the rounds of a measurement may end."""

    def ended(self, times: Collection[Sequence[float]], seconds: float) -> str:
        """Why the rounds end here; empty while they go on.

        Args:
            times: for each row, the time of one call in every round so far.
            seconds: how long the rounds have taken so far, all rows together.
        """


@dataclass(frozen=True)
class RoundsRule:
    """So many rounds, whatever they show.

    Attributes:
        rounds: how many.
    """

    rounds: int

    def __str__(self) -> str:
        return f"{self.rounds} rounds"

    def ended(self, times: Collection[Sequence[float]], seconds: float) -> str:  # noqa: ARG002  the protocol's
        """After the last round."""
        return str(self) if _rounds(times) >= self.rounds else ""


@dataclass(frozen=True)
class SpreadRule:
    """Until every row's median is steady, or the time is up.

    Steady is a median whose interquartile range, divided by the square root of the number of rounds, is a small part of
    it: the notch of a box plot (McGill, Tukey and Larsen 1978) is 1.57 times as wide to either side.

    Attributes:
        seconds: the time that the rounds may take, all rows together.
        spread: the part of the median.
        rounds: at least so many, if the time allows.
        least: at least so many, whatever the time: less makes no quartiles.
    """

    seconds: float = 2.0
    spread: float = 0.01
    rounds: int = 20
    least: int = 5

    def __str__(self) -> str:
        return f"medians steady to {100 * self.spread:g} %, or {self.seconds:g} s"

    def ended(self, times: Collection[Sequence[float]], seconds: float) -> str:
        """Where all medians are steady, or the time is up."""
        rounds = _rounds(times)
        if rounds < self.least:
            return ""
        if rounds >= self.rounds and all(unsteadiness(row) < self.spread for row in times):
            return f"every median is steady to {100 * self.spread:g} %"
        return f"the {self.seconds:g} s were up" if seconds >= self.seconds else ""


def unsteadiness(times: Sequence[float]) -> float:
    """The interquartile range of two or more `times` over the root of their number, as a part of their median."""
    low, middle, high = statistics.quantiles(times, method="inclusive")
    return (high - low) / math.sqrt(len(times)) / middle


def _rounds(times: Collection[Sequence[float]]) -> int:
    return min(map(len, times), default=0)
