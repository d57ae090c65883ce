"""The record of a map: what decides its results, and which shards it has."""

from __future__ import annotations

import dataclasses
import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from opwright.errors import MapError
from opwright.scale.layout import JOB_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opwright.scale.results.destination import Destination

_FORMAT = 1
_DIGEST = re.compile("[0-9a-f]{16}")
_WORDS = {
    "bundle": "the bundle",
    "host": "the PyTorch that the host was built for",
    "batch": "--batch",
    "threads": "--threads",
    "columns": "--column",
    "shard_rows": "--shard-rows",
}


@dataclass(frozen=True)
class Settings:
    """What decides the results of a map, beside its bundle and its inputs.

    Attributes:
        host: the version of PyTorch that runs the bundle.
        batch: how many rows run together.
        threads: how many threads one run computes with.
        columns: the column of an input in tables, by the name of the input, where it has another name.
        shard_rows: how many rows a shard has; None where it follows from the number of inputs.
    """

    host: str
    batch: int = 1
    threads: int = 1
    columns: Mapping[str, str] = field(default_factory=dict)
    shard_rows: int | None = None


@dataclass(frozen=True)
class Job:
    """A map.

    Attributes:
        bundle: the digest of the bundle.
        host: the version of PyTorch that runs it, or `bundle` for one with a host of its own.
        batch: how many rows run together.
        threads: how many threads one run computes with.
        columns: the column of an input in tables, by the name of the input, where it has another name.
        shard_rows: how many rows a shard has; the last one has what is left.
        folder: where relative paths of inputs begin.
        inputs: the number of inputs.
        shards: the digest of the inputs of each shard.
    """

    bundle: str
    host: str
    batch: int
    threads: int
    columns: Mapping[str, str]
    shard_rows: int
    folder: str
    inputs: int
    shards: tuple[str, ...]

    def to_json(self) -> bytes:
        """The text of the record."""
        return json.dumps({"format": _FORMAT, **dataclasses.asdict(self)}, indent=1).encode() + b"\n"


def read_job(destination: Destination) -> Job | None:
    """The record of the map whose results are in `destination`; None if there is none.

    Raises:
        MapError: it is not valid.
    """
    text = destination.read(JOB_NAME)
    if text is None:
        return None
    try:
        said: dict[str, Any] = json.loads(text)
        number = said.pop("format")
        job = Job(**{**said, "shards": tuple(said["shards"])})
        _check(job, number)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        msg = (
            f"{destination}/{JOB_NAME} is not the record of a map that this opwright reads: name another folder for "
            "the results"
        )
        raise MapError(msg) from error
    return job


def check_same(recorded: Job, bundle: str, settings: Settings, destination: Destination) -> None:
    """Check that a map can go on where another one stopped.

    Args:
        recorded: the record of the one that stopped.
        bundle: the digest of the bundle of the one that is to go on.
        settings: its settings.
        destination: where the results are, for the message.

    Raises:
        MapError: something that decides the results has changed.
    """
    for name, value in {"bundle": bundle, **dataclasses.asdict(settings)}.items():
        before = getattr(recorded, name)
        if value is not None and before != value:
            msg = (
                f"{destination} cannot be resumed: {_WORDS[name]} was {before}, and is {value} now, so that results "
                "would differ. Resume with what the map began with, or name another folder for the results"
            )
            raise MapError(msg)


def _check(job: Job, number: object) -> None:
    numbers = (job.batch, job.threads, job.shard_rows, job.inputs)
    texts = (job.bundle, job.host, job.folder, *job.columns, *job.columns.values())
    if not all(type(one) is int and one > 0 for one in numbers) or not all(isinstance(text, str) for text in texts):
        raise ValueError
    if number != _FORMAT or len(job.shards) != -(-job.inputs // job.shard_rows):
        raise ValueError
    if not all(_DIGEST.fullmatch(digest) for digest in job.shards):
        raise ValueError
