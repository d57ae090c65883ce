"""Runs shards on a Ray cluster, with Ray Data: each actor runs a host."""

from __future__ import annotations

import logging
import os
import socket
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from opwright.errors import MapError
from opwright.scale.engines.travelling_bundle import TravellingBundle, pack
from opwright.scale.layout import PRIVATE
from opwright.scale.results.ledger import Ledger
from opwright.scale.workers.host_command import host_command, host_version
from opwright.scale.workers.latencies import Latencies
from opwright.scale.workers.resources import memory_bytes, processors
from opwright.scale.workers.shard_runner import Finished, ShardRunner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opwright.scale.results.ledger import Shard
    from opwright.scale.work import Work

# How many times in a row Ray may give up without a new shard.
_FRUITLESS = 3
_PACKAGE = Path(__file__).parents[2]
_PATIENCE_S = 10.0


class RayEngine:
    """Workers on a Ray cluster.

    Args:
        bundle: the folder of the bundle.
        work: the map.
        count: called after each shard with its number of rows, and the number of those that failed.
        workers: the number of workers; None for the number of processors, or of GPUs for a bundle that requires one.
        address: the cluster's address; None for the one that Ray finds, or a new cluster on this machine.

    Raises:
        MapError: Ray is not installed, there is no cluster at the address, or it has no GPU for a bundle that requires
            one.
    """

    def __init__(
        self,
        bundle: Path,
        work: Work,
        count: Callable[[int, int], None],
        *,
        workers: int | None = None,
        address: str | None = None,
    ) -> None:
        self._bundle = bundle
        self._work = work
        self._count = count
        self.restarts = 0
        self._is_own = _connect(address, needs_nothing=work.facts.is_self_contained)
        try:
            self.workers = workers or _most_workers(work)
        except MapError:
            self._end()
            raise

    def run(self, shards: Sequence[Shard]) -> Iterator[Finished]:
        """Run shards, in any order, and yield each one after it is written.

        Raises:
            MapError: a row failed and the map is strict, or the map cannot continue.
        """
        import ray

        ledger = Ledger(self._work.job, self._work.destination)
        left = {shard.number: shard for shard in shards}
        self.workers = min(self.workers, len(shards))
        fruitless = 0
        try:
            bundle = pack(self._bundle, self._work.facts)
            while left:
                before = len(left)
                reason: Exception | None = None
                try:
                    for finished in self._run_once(bundle, [*left]):
                        # Ray runs a task again if its result is lost with a machine.
                        if left.pop(finished.shard.number, None) is not None:
                            yield self._counted(finished)
                except ray.exceptions.RayError as error:
                    _raise_own(error)
                    reason = error
                for shard in [*left.values()]:
                    if (done := ledger.find(shard)) is not None:
                        yield self._counted(Finished(shard, done.failed))
                        del left[shard.number]
                fruitless = 0 if len(left) < before else fruitless + 1
                if left and fruitless == _FRUITLESS:
                    msg = f"Ray gave up, and {len(left)} files of results are missing: {_brief(reason)}. Resume the map"
                    raise MapError(msg) from reason
        finally:
            self._end()

    def _run_once(self, bundle: TravellingBundle, numbers: Sequence[int]) -> Iterator[Finished]:
        import ray

        facts, job = self._work.facts, self._work.job
        ledger = Ledger(job, self._work.destination)
        needs_gpu = facts.device == "cuda"
        # One row per shard and one block per row: a lost actor loses one shard.
        dataset = ray.data.from_items([{"number": number} for number in numbers], override_num_blocks=len(numbers))
        dataset.context.enable_progress_bars = False
        results = dataset.map_batches(
            ShardActor,
            fn_constructor_args=(bundle, self._work, self.workers),
            batch_size=1,
            compute=ray.data.ActorPoolStrategy(size=min(self.workers, len(numbers))),
            num_cpus=None if needs_gpu else job.threads,
            num_gpus=1 if needs_gpu else None,
        )
        for batch in results.iter_batches(batch_size=None, prefetch_batches=0):
            for number, failed, restarts, latencies in zip(*(batch[name] for name in _RESULT), strict=True):
                self.restarts += int(restarts)
                yield Finished(ledger.shard(int(number)), int(failed), Latencies.from_json(str(latencies)))

    def _end(self) -> None:
        import ray

        if self._is_own:
            ray.shutdown()

    def _counted(self, finished: Finished) -> Finished:
        self._count(finished.shard.rows, finished.failed)
        return finished


_RESULT = ("number", "failed", "restarts", "latencies")


class ShardActor:
    """A worker in a Ray process.

    Args:
        bundle: the bundle.
        work: the map.
        workers: the number of workers of the map, on all machines.

    Raises:
        MapError: this machine does not have the folder of results, or has a different PyTorch than the driver.
    """

    def __init__(self, bundle: TravellingBundle, work: Work, workers: int) -> None:
        folder = work.destination.folder
        if folder is not None and not (folder / PRIVATE).is_dir():
            msg = f"{folder} does not exist on {os.uname().nodename}: expected a folder on all machines, or a URL"
            raise MapError(msg)
        if (version := host_version(work.facts)) != work.job.host:
            msg = f"{os.uname().nodename} has PyTorch {version}: expected {work.job.host}, as on the driver"
            raise MapError(msg)
        if work.limits.memory_bytes is None and work.facts.device == "cpu":
            share = memory_bytes() // max(1, min(workers, processors() // work.job.threads))
            work = replace(work, limits=replace(work.limits, memory_bytes=share))
        self._ledger = Ledger(work.job, work.destination)
        self._runner = ShardRunner(host_command(bundle.here(), work.facts), work)

    def __call__(self, batch: dict[str, np.ndarray[Any, Any]]) -> dict[str, np.ndarray[Any, Any]]:
        """Run the shards with these numbers, and return the result of each."""
        rows = [self._run(int(number)) for number in batch["number"]]
        return {name: np.array(column) for name, column in zip(_RESULT, zip(*rows, strict=True), strict=True)}

    def _run(self, number: int) -> tuple[int, int, int, str]:
        shard = self._ledger.shard(number)
        # A lost worker may have written the shard before it could report it.
        if (done := self._ledger.find(shard)) is not None:
            return number, done.failed, 0, Latencies().to_json()
        before = self._runner.restarts
        (finished,) = self._runner.run([shard])
        return number, finished.failed, self._runner.restarts - before, finished.latencies.to_json()


def _connect(address: str | None, *, needs_nothing: bool) -> bool:
    """Connect to a cluster, unless this process is connected; return whether opwright must close the connection."""
    try:
        import ray
        import ray.data
    except ImportError as error:
        msg = f"--on ray requires Ray: pip install 'opwright[ray]' ({error})"
        raise MapError(msg) from error
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    if ray.is_initialized():
        return False
    _check_reachable(address)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    settings: dict[str, Any] = {"address": address, "log_to_driver": False, "logging_level": logging.ERROR}
    if needs_nothing:  # workers without opwright receive it from here
        settings["runtime_env"] = {"py_modules": [str(_PACKAGE)]}
    try:
        ray.init(**settings)
    except (ConnectionError, ValueError, RuntimeError) as error:
        msg = f"there is no Ray cluster at {address}: {error}"
        raise MapError(msg) from error
    return True


def _check_reachable(address: str | None) -> None:
    """Check that something listens at a HOST:PORT, because Ray would retry for minutes."""
    host, colon, port = (address or "").rpartition(":")
    if not colon or not port.isdecimal() or "/" in host:
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), _PATIENCE_S).close()
    except (OSError, OverflowError) as error:
        msg = f"there is no Ray cluster at {address}: {error}. Pass HOST:PORT as `ray status` prints it, or `local`"
        raise MapError(msg) from error


def _brief(error: Exception | None) -> str:
    """The last line of Ray's error, which is the cause."""
    return (str(error).strip().splitlines() or ["unknown reason"])[-1]


def _most_workers(work: Work) -> int:
    import ray

    there = ray.cluster_resources()
    if work.facts.device == "cuda":
        if not there.get("GPU", 0):
            msg = (
                "the bundle was made for a GPU, and the Ray cluster has none: use a cluster with GPUs, pass --workers "
                "if it adds GPUs on demand, or ship the model for the CPU"
            )
            raise MapError(msg)
        return max(1, int(there["GPU"]))
    return max(1, int(there.get("CPU", 0)) // work.job.threads)


def _raise_own(error: BaseException | None) -> None:
    """Raise the error that opwright raised in a worker, if that is what Ray reports."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, MapError):
            raise MapError(_own_message(error)) from None
        error = getattr(error, "cause", None) or error.__cause__ or error.__context__


def _own_message(error: MapError) -> str:
    return str(error.args[0]) if error.args else str(error)
