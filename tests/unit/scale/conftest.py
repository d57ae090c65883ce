"""Fixtures that tests of maps share: a bundle, the record of a map, and a folder of files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Protocol

import pytest

from opwright.scale.facts.bundle_facts import BundleFacts, InputFacts, OutputFacts
from opwright.scale.results.destination import Destination
from opwright.scale.results.job import Job
from opwright.scale.work import Limits, Work


class Files(Protocol):
    """Creates files, and the folders that contain them."""

    def __call__(self, *names: str) -> Path: ...


@pytest.fixture
def files(tmp_path: Path) -> Files:
    def files(*names: str) -> Path:
        for name in names:
            path = tmp_path / "files" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        return tmp_path / "files"

    return files


@pytest.fixture
def facts() -> BundleFacts:
    """A bundle with one input and one output."""
    return BundleFacts(
        digest="d" * 64,
        device="cpu",
        is_self_contained=False,
        model_bytes=1000,
        inputs=(InputFacts("x", "float32", ((1, 4), (2, 2))),),
        outputs=(OutputFacts("y", "float32", (1, 2), 2),),
        most_rows=4,
    )


@pytest.fixture
def job() -> Job:
    """A map of five inputs in three shards."""
    shards = tuple(f"{number:016x}" for number in range(3))
    return Job("d" * 64, "2.13.0", batch=2, threads=1, columns={}, shard_rows=2, folder="/", inputs=5, shards=shards)


@pytest.fixture
def destination(tmp_path: Path) -> Destination:
    return Destination(str(tmp_path / "results"))


@pytest.fixture
def work(facts: BundleFacts, job: Job, destination: Destination) -> Work:
    """A map with a bundle for GPUs."""
    return Work(replace(facts, device="cuda", is_self_contained=True), job, destination, Limits())
