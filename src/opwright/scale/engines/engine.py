"""The interface of an engine of a map: it runs shards, and reports the result of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opwright.scale.results.ledger import Shard
    from opwright.scale.workers.shard_runner import Finished


class Engine(Protocol):
    """Runs shards on some workers.

    Attributes:
        workers: the number of hosts that run at a time.
        restarts: how often a host exited and was started again.
    """

    workers: int
    restarts: int

    def run(self, shards: Sequence[Shard]) -> Iterator[Finished]:
        """Run shards, in any order, and yield each one after it is written."""
