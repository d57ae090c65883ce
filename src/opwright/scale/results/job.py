"""The record of a map: the settings that determine its results, and its shards."""

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
    """The settings that determine the results of a map, besides its bundle and its inputs.

    Attributes:
        host: the version of PyTorch that runs the bundle.
        batch: the number of rows that run together.
        threads: the number of threads that one run uses.
        columns: the column of each input in tables, keyed by the input's name, where the two names differ.
        shard_rows: the number of rows of a shard; None if it follows from the number of inputs.
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
        host: the version of PyTorch that runs it, or `bundle` for one that contains its own host.
        batch: the number of rows that run together.
        threads: the number of threads that one run uses.
        columns: the column of each input in tables, keyed by the input's name, where the two names differ.
        shard_rows: the number of rows of a shard; the last shard has the remaining rows.
        folder: the folder that relative paths of inputs start from.
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
    """Read the record of the map whose results are in `destination`; None if there is none.

    Raises:
        MapError: the record is not valid.
    """
    text = destination.read(JOB_NAME)
    if text is None:
        return None
    try:
        fields: dict[str, Any] = json.loads(text)
        number = fields.pop("format")
        job = Job(**{**fields, "shards": tuple(fields["shards"])})
        _check(job, number)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        msg = (
            f"{destination}/{JOB_NAME} is not a record of a map that this opwright supports: use another folder for "
            "the results"
        )
        raise MapError(msg) from error
    return job


def check_same(recorded: Job, bundle: str, settings: Settings, destination: Destination) -> None:
    """Check that a map can continue where an earlier run stopped.

    Args:
        recorded: the record of the run that stopped.
        bundle: the digest of the bundle of the resuming run.
        settings: its settings.
        destination: the folder of results, for the message.

    Raises:
        MapError: something that determines the results has changed.
    """
    for name, value in {"bundle": bundle, **dataclasses.asdict(settings)}.items():
        before = getattr(recorded, name)
        if value is not None and before != value:
            msg = (
                f"{destination} cannot be resumed: {_WORDS[name]} was {before}, and is now {value}, so results would "
                "differ. Resume with the original setting, or use another folder for the results"
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
