"""Runs shards on one worker: loads inputs into rows, gets their answers, and writes files of results."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from opwright.errors import MapError
from opwright.scale.inputs.loader import Loader
from opwright.scale.layout import PLAN_NAME
from opwright.scale.results.columns import Columns
from opwright.scale.results.plan import Plan
from opwright.scale.results.shard_file import ShardFile
from opwright.scale.workers.isolation import Isolation
from opwright.scale.workers.latencies import Latencies
from opwright.scale.workers.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from opwright.scale.inputs.item import Item
    from opwright.scale.results.ledger import Shard
    from opwright.scale.rows import Answer, Failure, Row
    from opwright.scale.work import Work


@dataclass
class Finished:
    """A shard that this worker has written.

    Attributes:
        shard: the shard.
        failed: the number of its rows that failed.
        latencies: the model's latencies for its rows.
    """

    shard: Shard
    failed: int
    latencies: Latencies = field(default_factory=Latencies)


class _Asked(NamedTuple):
    """The inputs of a batch that was sent, and their shard."""

    shard: Shard
    items: Sequence[Item]
    is_last: bool


class ShardRunner:
    """A worker that runs shards.

    Args:
        command: the host program, and the bundle.
        work: the map.
        count: called after each row with 1, and with 1 if it failed, else 0.
    """

    def __init__(
        self, command: Sequence[str | Path], work: Work, count: Callable[[int, int], None] | None = None
    ) -> None:
        self._work = work
        self._count = count
        self._columns = Columns(work.facts.outputs)
        folder = Path(work.job.folder)
        self._loader = Loader(work.facts, folder, work.job.columns)
        self._asked: deque[_Asked] = deque()
        self._isolation = Isolation(lambda: Worker(command, work.job.threads, work.limits, folder))

    @property
    def pid(self) -> int | None:
        """The process ID of the host; None if none runs."""
        return self._isolation.pid

    @property
    def restarts(self) -> int:
        """How often the host exited and was started again."""
        return self._isolation.restarts

    def run(self, shards: Iterable[Shard]) -> Iterator[Finished]:
        """Run shards, and yield each one after its results are written. Shards are read ahead of their results.

        Raises:
            MapError: a row failed and the map is strict, or the map cannot continue.
        """
        answers = self._isolation.answers_to_all(self._batches(shards))
        while (shard := self._next_shard(answers)) is not None:
            yield shard

    def stop(self) -> None:
        """Stop the host while another thread is in `run`, which then raises StoppedError."""
        self._loader.close()
        self._isolation.stop()

    def close(self) -> None:
        """Stop the host and all reads."""
        self._isolation.close()
        self._loader.close()

    def _next_shard(self, answers: Iterator[list[Answer]]) -> Finished | None:
        """The next shard, after all its rows are written."""
        first = next(answers, None)
        if first is None:
            return None
        shard = self._asked[0].shard
        finished = Finished(shard, 0)
        with self._work.destination.writing(shard.name) as path:
            file = ShardFile(path, self._columns, shard.first)
            try:
                is_last = self._write(first, file, finished)
                while not is_last:
                    is_last = self._write(next(answers), file, finished)
                file.close()
            except BaseException:
                with contextlib.suppress(Exception):
                    file.abandon()
                raise
        finished.failed = file.failed
        return finished

    def _write(self, answers: list[Answer], file: ShardFile, finished: Finished) -> bool:
        """Write the rows of one batch; return whether it is the last of its shard."""
        asked = self._asked.popleft()
        for item, given in zip(asked.items, answers, strict=True):
            answer = self._columns.fitted(given)
            name = os.fsencode(item.input).decode(errors="backslashreplace")
            if answer.failure is not None and self._work.limits.strict:
                msg = f"{name}: {answer.failure.message} ({answer.failure.status}). Without --strict it becomes a row"
                raise MapError(msg)
            if answer.failure is None:
                finished.latencies.add(answer.seconds)
            file.add(name, answer)
            if self._count is not None:
                self._count(1, int(answer.failure is not None))
        return asked.is_last

    def _batches(self, shards: Iterable[Shard]) -> Iterator[list[Row | Failure]]:
        """Yield batches, and remember the inputs of each until its answers arrive."""
        waiting: deque[tuple[Shard, int, Item]] = deque()

        def items() -> Iterator[Item]:
            with self._work.destination.open(PLAN_NAME) as file:
                plan = Plan(file)
                for shard in shards:
                    for place, item in enumerate(plan.items(shard.first, shard.rows)):
                        waiting.append((shard, place, item))
                        yield item

        taken: list[Item] = []
        rows: list[Row | Failure] = []
        for row in self._loader.rows(items()):
            shard, place, item = waiting.popleft()
            taken.append(item)
            rows.append(row)
            is_last = place + 1 == shard.rows
            if is_last or len(rows) == self._work.job.batch:
                self._asked.append(_Asked(shard, taken, is_last))
                yield rows
                taken, rows = [], []
