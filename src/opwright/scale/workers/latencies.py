"""How long runs took, in a histogram whose size does not depend on their number."""

from __future__ import annotations

import json
import math
from collections import Counter

_STEPS = 64  # for each factor of 2: a value is known to 1.1 %


class Latencies:
    """A histogram of times."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()

    def add(self, seconds: float) -> None:
        """Count one run."""
        self._counts[round(math.log2(max(seconds, 1e-9)) * _STEPS)] += 1

    def update(self, other: Latencies) -> None:
        """Count the runs of another histogram too."""
        self._counts.update(other._counts)

    def to_json(self) -> str:
        """The histogram as text, for another process."""
        return json.dumps({str(step): count for step, count in self._counts.items()})

    @classmethod
    def from_json(cls, text: str) -> Latencies:
        """The histogram that `to_json` made text of."""
        made = cls()
        made._counts.update({int(step): count for step, count in json.loads(text).items()})
        return made

    def percentiles(self) -> dict[str, float]:
        """The times in seconds that half, 90 % and 99 % of the runs took at most; empty if there was none."""
        if not self._counts:
            return {}
        return {"p50": self._percentile(0.5), "p90": self._percentile(0.9), "p99": self._percentile(0.99)}

    def _percentile(self, part: float) -> float:
        left = math.ceil(part * sum(self._counts.values()))
        steps = sorted(self._counts)
        for step in steps:
            left -= self._counts[step]
            if left <= 0:
                return float(2 ** (step / _STEPS))
        return float(2 ** (steps[-1] / _STEPS))
