"""Runs shards on this machine, on several hosts that each have a thread to drive them."""

from __future__ import annotations

import queue
import threading
from concurrent.futures import Future, wait
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from opwright.errors import MapError
from opwright.scale.daemon import in_daemon_thread
from opwright.scale.workers.gpus import gpus
from opwright.scale.workers.host_command import host_command
from opwright.scale.workers.resources import memory_bytes, most_workers
from opwright.scale.workers.shard_runner import ShardRunner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from opwright.scale.results.ledger import Shard
    from opwright.scale.work import Work
    from opwright.scale.workers.shard_runner import Finished

_PATIENCE_S = 10.0


class LocalEngine:
    """Workers on this machine, which claim shards one by one.

    Args:
        bundle: the folder of the bundle.
        work: the map.
        count: called after each row with 1, and with 1 if it failed, else 0.
        workers: the number of workers; None for one on each processor, limited by the available memory, or for a bundle
            that requires a GPU, one on each GPU.

    Raises:
        MapError: the bundle requires a GPU, and there is none.
    """

    def __init__(
        self, bundle: Path, work: Work, count: Callable[[int, int], None], *, workers: int | None = None
    ) -> None:
        self._gpus = _gpus() if work.facts.device == "cuda" else ()
        self.workers = workers or len(self._gpus) or most_workers(work.job.threads, work.facts.model_bytes)
        self.restarts = 0
        self._count = count
        self._command = host_command(bundle, work.facts)
        self._work = work
        if work.limits.memory_bytes is None and work.facts.device == "cpu":
            self._work = replace(work, limits=replace(work.limits, memory_bytes=memory_bytes() // self.workers))

    def run(self, shards: Sequence[Shard]) -> Iterator[Finished]:
        """Run shards, in any order, and yield each one after it is written.

        Raises:
            MapError: a row failed and the map is strict, or the map cannot continue.
        """
        # Claimed in order; the iterator needs the lock.
        claims = _Claims(shards)
        results: queue.SimpleQueue[Finished | Future[None]] = queue.SimpleQueue()
        self.workers = min(self.workers, len(shards))
        runners = [ShardRunner(self._command, self._work_of(number), self._count) for number in range(self.workers)]
        ends = [in_daemon_thread(partial(_run, runner, claims, results), name="opwright-worker") for runner in runners]
        try:
            for end in ends:
                end.add_done_callback(results.put)
            left = len(ends)
            while left:
                one = results.get()
                if isinstance(one, Future):
                    one.result()
                    left -= 1
                else:
                    yield one
        finally:
            claims.end()
            for runner in runners:
                runner.stop()
            wait(ends, _PATIENCE_S)  # an unresponsive file system may block one
            self.restarts += sum(runner.restarts for runner in runners)

    def _work_of(self, number: int) -> Work:
        """The work of the worker with this number: workers share the GPUs round-robin."""
        if not self._gpus:
            return self._work
        return replace(self._work, limits=replace(self._work.limits, gpu=self._gpus[number % len(self._gpus)]))


class _Claims:
    """Shards that several threads claim one by one."""

    def __init__(self, shards: Iterable[Shard]) -> None:
        self._shards = iter(shards)
        self._turn = threading.Lock()
        self._is_ended = False

    def __iter__(self) -> Iterator[Shard]:
        while (shard := self._next()) is not None:
            yield shard

    def end(self) -> None:
        """Stop handing out shards."""
        self._is_ended = True

    def _next(self) -> Shard | None:
        with self._turn:
            return None if self._is_ended else next(self._shards, None)


def _gpus() -> tuple[str, ...]:
    found = gpus()
    if not found:
        msg = (
            "the bundle was made for a GPU, and this machine has none: run the map on a machine with a GPU, or ship "
            "the model for the CPU"
        )
        raise MapError(msg)
    return found


def _run(runner: ShardRunner, claims: Iterable[Shard], results: queue.SimpleQueue[Finished | Future[None]]) -> None:
    """Run the shards that a worker claims."""
    try:
        for finished in runner.run(claims):
            results.put(finished)
    finally:
        runner.close()
