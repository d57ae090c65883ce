"""What a map has done, in figures."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class MapSummary:
    """A map that has ended.

    Attributes:
        output: where the results are.
        inputs: the number of inputs, each of which has a row now.
        failed: how many rows failed.
        resumed: how many rows were there before this run.
        shards: the number of files of results.
        seconds: how long this run took.
        rows_per_second: rows of this run, by its time.
        latency_seconds: `p50`, `p90` and `p99` of the model's runs; empty if nothing was run.
        workers: how many hosts ran.
        restarts: how often a host ended and was started again.
    """

    output: str
    inputs: int
    failed: int
    resumed: int
    shards: int
    seconds: float
    rows_per_second: float
    latency_seconds: dict[str, float]
    workers: int
    restarts: int

    def to_builtins(self) -> dict[str, Any]:
        """The summary as JSON has it."""
        return asdict(self)
