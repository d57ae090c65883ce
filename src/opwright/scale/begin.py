"""Starts a map, or finds the remaining work of one that stopped."""

from __future__ import annotations

import contextlib
import itertools
from pathlib import Path
from typing import TYPE_CHECKING

from opwright.errors import MapError
from opwright.scale.inputs.find import find_items
from opwright.scale.layout import DRAFTS_NAME, JOB_NAME, LOCK_NAME, PLAN_NAME, PRIVATE
from opwright.scale.results.job import Job, check_same, read_job
from opwright.scale.results.plan import Plan, shard_digests, write_plan
from opwright.storage.lock import has_no_locks, locked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from opwright.scale.facts.bundle_facts import BundleFacts
    from opwright.scale.inputs.item import Item
    from opwright.scale.results.destination import Destination
    from opwright.scale.results.job import Settings

# Enough shards for all workers to finish at about the same time, and small ones, so that losing one costs little.
_SHARDS = 64
_MOST_ROWS = 1000
_NO_INPUTS = "there are no inputs: expected files, folders, patterns, lists or Parquet files"


@contextlib.contextmanager
def alone(destination: Destination) -> Iterator[None]:
    """Keep other maps out of the folder of results, if its file system supports locks.

    Raises:
        MapError: another map is writing to the folder.
    """
    if destination.folder is None:
        yield
        return
    was_there = destination.folder.exists()
    with contextlib.ExitStack() as stack:
        try:
            (destination.folder / PRIVATE).mkdir(parents=True, exist_ok=True)
            is_held = stack.enter_context(locked(destination.folder / LOCK_NAME, patience_s=0))
        except OSError as error:
            if not has_no_locks(error):
                msg = f"{destination} cannot be written: {error.strerror}. Use a folder that you own"
                raise MapError(msg) from error
            is_held = True
        if not is_held:
            msg = f"another map is writing to {destination}: wait until it finishes, or use another folder"
            raise MapError(msg)
        try:
            yield
        finally:
            if not (destination.folder / JOB_NAME).exists():
                _remove_traces(destination.folder, was_there=was_there)


def _remove_traces(folder: Path, *, was_there: bool) -> None:
    """Remove the files of a map that did not start."""
    (folder / LOCK_NAME).unlink(missing_ok=True)
    for made in (folder / DRAFTS_NAME, folder / PRIVATE, *([] if was_there else [folder])):
        with contextlib.suppress(OSError):  # it contains something else
            made.rmdir()


class Beginning:
    """The start of a new or resumed map.

    Args:
        arguments: the arguments that name the inputs; None to resume with the inputs of the first run.
        facts: the facts about the bundle.
        destination: the folder of results.
        settings: the settings that determine the results.
        found: called with the number of inputs found so far.
    """

    def __init__(
        self,
        arguments: Iterable[str] | None,
        facts: BundleFacts,
        destination: Destination,
        settings: Settings,
        found: Callable[[int], None],
    ) -> None:
        self._arguments = arguments
        self._facts = facts
        self._destination = destination
        self._settings = settings
        self._found = found

    def begin(self) -> Job:
        """Find all inputs, and write the plan and the record of a new map.

        Raises:
            MapError: the folder holds a map or anything else, there are no inputs, or one is not valid.
        """
        settings, destination = self._settings, self._destination
        if read_job(destination) is not None:
            msg = f"{destination} has the results of a map: pass --resume to continue it, or use another folder"
            raise MapError(msg)
        if strangers := [name for name in destination.names() if name != PRIVATE]:
            msg = f"{destination} is not empty: it contains {min(strangers)}. Use a new folder for the results"
            raise MapError(msg)
        with destination.writing(PLAN_NAME) as path:
            count = write_plan(self._items(settings.columns), path, self._found)
            if not count:
                raise MapError(_NO_INPUTS)
            rows = settings.shard_rows or _rows(count, settings.batch)
            with path.open("rb") as file:
                shards = tuple(shard_digests(Plan(file), rows))
        job = Job(
            bundle=self._facts.digest,
            host=settings.host,
            batch=settings.batch,
            threads=settings.threads,
            columns=dict(settings.columns),
            shard_rows=rows,
            folder=str(Path.cwd()),
            inputs=count,
            shards=shards,
        )
        with destination.writing(JOB_NAME) as path:
            path.write_bytes(job.to_json())
        return job

    def resume(self) -> Job:
        """Read the record of the map that stopped, and check that it can continue.

        Raises:
            MapError: there is no record, or something that determines the results has changed.
        """
        job = read_job(self._destination)
        if job is None:
            msg = f"{self._destination} has no map to resume: omit --resume to start one"
            raise MapError(msg)
        check_same(job, self._facts.digest, self._settings, self._destination)
        if self._arguments is not None:
            self._check_inputs(job)
        return job

    def _check_inputs(self, job: Job) -> None:
        digests = shard_digests(self._items(job.columns), job.shard_rows)
        for number, (before, now) in enumerate(itertools.zip_longest(job.shards, digests)):
            first = number * job.shard_rows
            self._found(first)
            if before != now:
                msg = (
                    f"{self._destination} cannot be resumed with these inputs: they differ from those that the map "
                    f"started with, first among the inputs {first} to {first + job.shard_rows - 1}. Pass no inputs to "
                    "resume with the original ones, or use another folder for the results"
                )
                raise MapError(msg)

    def _items(self, columns: Mapping[str, str]) -> Iterator[Item]:
        names = tuple(columns.get(one.name, one.name) for one in self._facts.inputs)
        return find_items(self._arguments or (), names)


def _rows(count: int, batch: int) -> int:
    """The number of rows of a shard: a multiple of the batch size."""
    wanted = min(_MOST_ROWS, -(-count // _SHARDS))
    return -(-wanted // batch) * batch
