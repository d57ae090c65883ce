"""The durations of runs, in a histogram of bounded size."""

from __future__ import annotations

import json
import math
from collections import Counter

_STEPS = 64  # for each factor of 2, so values are accurate to 1.1 %


class Latencies:
    """A histogram of durations."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()

    def add(self, seconds: float) -> None:
        """Count one run."""
        self._counts[round(math.log2(max(seconds, 1e-9)) * _STEPS)] += 1

    def update(self, other: Latencies) -> None:
        """Add the runs of another histogram."""
        self._counts.update(other._counts)

    def to_json(self) -> str:
        """The histogram as text, to send to another process."""
        return json.dumps({str(step): count for step, count in self._counts.items()})

    @classmethod
    def from_json(cls, text: str) -> Latencies:
        """Parse the text that `to_json` returned."""
        made = cls()
        made._counts.update({int(step): count for step, count in json.loads(text).items()})
        return made

    def percentiles(self) -> dict[str, float]:
        """The 50th, 90th and 99th percentiles in seconds; empty if there were no runs."""
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
