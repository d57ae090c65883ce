"""A summary of a map in figures."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class MapSummary:
    """The summary of a finished map.

    Attributes:
        output: the folder of results.
        inputs: the number of inputs, each of which now has a row.
        failed: the number of rows that failed.
        resumed: the number of rows from earlier runs.
        shards: the number of files of results.
        seconds: the duration of this run, without building the host.
        rows_per_second: the rows of this run per second.
        latency_seconds: `p50`, `p90` and `p99` of the model's runs; empty if there were none.
        workers: the number of hosts.
        restarts: how often a host exited and was started again.
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
        """The summary as JSON-compatible values."""
        return asdict(self)
