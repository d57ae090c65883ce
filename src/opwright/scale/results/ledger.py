"""Which shards of a map are done: the file of each is either complete or missing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opwright.scale.results.destination import Destination
    from opwright.scale.results.job import Job

# In the metadata of a shard.
FAILED_KEY = b"opwright.failed"
_READERS = 16


class Shard(NamedTuple):
    """Consecutive inputs, and the file of their results.

    Attributes:
        number: its position among the shards.
        first: the id of its first input.
        rows: the number of its inputs.
        name: the name of its file, made of its number and a digest of its inputs.
    """

    number: int
    first: int
    rows: int
    name: str


class Done(NamedTuple):
    """A shard that is done, and the number of its rows that failed."""

    shard: Shard
    failed: int


class Ledger:
    """The shards of a map.

    Only the names of the existing files record what is done, so the record and the results cannot disagree.

    Args:
        job: the map.
        destination: the folder of results.
    """

    def __init__(self, job: Job, destination: Destination) -> None:
        self._job = job
        self._destination = destination

    def shard(self, number: int) -> Shard:
        """The shard with this number."""
        first = number * self._job.shard_rows
        rows = min(self._job.shard_rows, self._job.inputs - first)
        return Shard(number, first, rows, f"part-{number:08d}-{self._job.shards[number]}.parquet")

    def done(self) -> list[Done]:
        """The shards that are done, in order. Damaged files do not count."""
        there = set(self._destination.names())
        shards = [shard for shard in self._all() if shard.name in there]
        with ThreadPoolExecutor(_READERS) as readers:
            return [done for done in readers.map(self._read, shards) if done is not None]

    def missing(self, done: Iterable[Done]) -> list[Shard]:
        """The remaining shards, in order."""
        numbers = {one.shard.number for one in done}
        return [shard for shard in self._all() if shard.number not in numbers]

    def find(self, shard: Shard) -> Done | None:
        """The shard if it is done, else None."""
        return self._read(shard)

    def _all(self) -> Iterator[Shard]:
        return map(self.shard, range(len(self._job.shards)))

    def _read(self, shard: Shard) -> Done | None:
        try:
            with self._destination.open(shard.name) as file:
                metadata = pq.read_metadata(file)
                failed = int((metadata.metadata or {})[FAILED_KEY])
        except (OSError, pa.ArrowException, KeyError, ValueError):
            return None
        return Done(shard, failed) if metadata.num_rows == shard.rows and 0 <= failed <= shard.rows else None
