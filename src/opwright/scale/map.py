"""Runs a bundle on many inputs."""

from __future__ import annotations

import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from opwright.errors import MapError
from opwright.scale.begin import Beginning, alone
from opwright.scale.facts.batch_size import check_batch
from opwright.scale.facts.bundle_facts import read_facts
from opwright.scale.progress import MapProgress
from opwright.scale.results.destination import Destination
from opwright.scale.results.job import Settings
from opwright.scale.results.ledger import Ledger
from opwright.scale.summary import MapSummary
from opwright.scale.urls import is_url
from opwright.scale.work import Limits, Work
from opwright.scale.workers.host_command import host_command, host_version
from opwright.scale.workers.latencies import Latencies

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from opwright.scale.engines.engine import Engine
    from opwright.scale.facts.bundle_facts import BundleFacts

ENGINES = ("local", "ray")


def map(
    bundle: str | Path,
    inputs: str | Path | Iterable[str | Path] | None = None,
    output: str | Path = "",
    *,
    on: str = "local",
    address: str | None = None,
    workers: int | None = None,
    threads: int = 1,
    batch: int = 1,
    columns: Mapping[str, str] | None = None,
    shard_rows: int | None = None,
    memory: int | None = None,
    timeout_s: float | None = None,
    strict: bool = False,
    resume: bool = False,
    progress: MapProgress | None = None,
) -> MapSummary:
    """Run a bundle on many inputs, each exactly once, and write a table of the results.

    The table is a folder of Parquet files with one row for each input, in the order of the inputs: `id`, from 0;
    `input`; `status`, which is `ok` or the name of a host exit code; `error`, one line or null; then one column for
    each output of the model. docs/howto/scaling.md describes it.

    Args:
        bundle: a folder that `opwright ship` wrote.
        inputs: files, folders, patterns such as `photos/*.jpg`, lists (`.txt`, `.jsonl`), Parquet files whose rows are
            inputs, and fsspec URLs. Optional when resuming.
        output: the folder for the results, or an fsspec URL; new or empty, unless `resume` is set.
        on: `local` for this machine, `ray` for a Ray cluster.
        address: the address of the Ray cluster; by default the one that Ray finds, or a new one on this machine.
        workers: the number of hosts that run at a time; by default, one for each processor, or for each GPU if the
            bundle was made for one.
        threads: the number of threads that one run of the model uses.
        batch: the number of inputs that run together.
        columns: the column of each input in Parquet files, keyed by the input's name, where the two names differ.
        shard_rows: the number of rows of each file of results; by default 64 files of at most 1,000 rows.
        memory: the memory limit of a host in bytes; by default its share of the machine's memory.
        timeout_s: stop a host that does not answer within this time, in seconds; its input becomes a row with an error.
        strict: stop at the first input that fails, instead of writing a row with its error.
        resume: continue a map that stopped.
        progress: shows the progress.

    Returns:
        A summary in figures.

    Raises:
        MapError: an argument is not valid; the map cannot be resumed; or an input failed and `strict` is set.
        BundleError: the bundle is not valid.
        ToolchainError: the host cannot be built, or a package is missing.
    """
    folder = Path(bundle).absolute()
    facts = read_facts(folder)
    settings = Settings(host_version(facts), batch, threads, columns or {}, shard_rows)
    _check(facts, settings, os.fspath(output), on=on, workers=workers)
    destination = Destination(os.fspath(output))
    if on == "local":
        host_command(folder, facts)  # this may build it, which shows its own progress
    began = time.monotonic()
    latencies = Latencies()
    with progress or MapProgress("map") as shown, alone(destination):
        destination.remove_drafts()
        shown.look()
        beginning = Beginning(_texts(inputs), facts, destination, settings, shown.found)
        job = beginning.resume() if resume else beginning.begin()
        ledger = Ledger(job, destination)
        done = ledger.done()
        left = ledger.missing(done)
        resumed, failed = sum(one.shard.rows for one in done), sum(one.failed for one in done)
        shown.begin(job.inputs, resumed, failed)
        work = Work(facts, job, destination, Limits(memory, timeout_s, strict))
        engine = _engine(on, folder, work, shown, workers=workers, address=address) if left else None
        for finished in engine.run(left) if engine is not None else ():
            failed += finished.failed
            latencies.update(finished.latencies)
        destination.remove_drafts()
    seconds = time.monotonic() - began
    return MapSummary(
        output=str(destination),
        inputs=job.inputs,
        failed=failed,
        resumed=resumed,
        shards=len(job.shards),
        seconds=seconds,
        rows_per_second=(job.inputs - resumed) / seconds,
        latency_seconds=latencies.percentiles(),
        workers=0 if engine is None else engine.workers,
        restarts=0 if engine is None else engine.restarts,
    )


def _engine(
    on: str, folder: Path, work: Work, shown: MapProgress, *, workers: int | None, address: str | None
) -> Engine:
    if on == "ray":
        from opwright.scale.engines.ray import RayEngine

        return RayEngine(folder, work, shown.count, workers=workers, address=address)
    from opwright.scale.engines.local import LocalEngine

    return LocalEngine(folder, work, shown.count, workers=workers)


def _texts(inputs: str | Path | Iterable[str | Path] | None) -> Iterable[str] | None:
    if inputs is None or isinstance(inputs, (str, Path)):
        return None if inputs is None else [os.fspath(inputs)]
    return (os.fspath(one) for one in inputs)


def _check(facts: BundleFacts, settings: Settings, output: str, *, on: str, workers: int | None) -> None:
    batch, shard_rows = settings.batch, settings.shard_rows
    if on not in ENGINES:
        msg = f"the engine {on!r} is unknown: expected {' or '.join(ENGINES)}"
        raise MapError(msg)
    for name, value in {"workers": workers, **asdict(settings)}.items():
        if isinstance(value, int) and value < 1:
            msg = f"{name} is {value}: expected at least 1"
            raise MapError(msg)
    names = [one.name for one in facts.inputs]
    if unknown := [name for name in settings.columns if name not in names]:
        msg = f"a column is given for the input {unknown[0]}, which is unknown: expected {', '.join(names)}"
        raise MapError(msg)
    check_batch(facts, batch)
    if shard_rows is not None and shard_rows % batch:
        msg = f"shard_rows is {shard_rows}: expected a multiple of batch, which is {batch}"
        raise MapError(msg)
    if not output:
        msg = "no output is given: expected a folder, or a URL such as s3://bucket/folder"
        raise MapError(msg)
    if not is_url(output) and Path(output).exists() and not Path(output).is_dir():
        msg = f"{output} is a file: expected a folder"
        raise MapError(msg)
