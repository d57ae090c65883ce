"""What an engine of a map is: it runs shards, and says what became of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opwright.scale.results.ledger import Shard
    from opwright.scale.workers.shard_runner import Finished


class Engine(Protocol):
    """Runs shards on some workers.

    Attributes:
        workers: how many hosts run at a time.
        restarts: how often a host ended and was started again.
    """

    workers: int
    restarts: int

    def run(self, shards: Sequence[Shard]) -> Iterator[Finished]:
        """Run shards, in any order, and yield each that is written."""
