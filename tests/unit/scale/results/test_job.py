from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opwright.errors import MapError
from opwright.scale.layout import JOB_NAME
from opwright.scale.results.destination import Destination
from opwright.scale.results.job import Job, Settings, check_same, read_job

SETTINGS = Settings("2.13.0", batch=2, threads=1, shard_rows=2)


def record(destination: Destination, text: bytes) -> None:
    with destination.writing(JOB_NAME) as path:
        path.write_bytes(text)


def test_a_record_is_read_back(destination: Destination, job: Job) -> None:
    assert read_job(destination) is None
    record(destination, job.to_json())
    assert read_job(destination) == job


@settings(max_examples=40)
@given(st.data())
def test_any_record_is_read_back(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    numbers = st.integers(1, 10**9)
    inputs, rows = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 7))
    digests = st.integers(0, 2**64 - 1).map("{:016x}".format)
    shards = data.draw(st.lists(digests, min_size=-(-inputs // rows), max_size=-(-inputs // rows)))
    job = Job(
        bundle="0" * 64,
        host=data.draw(st.text()),
        batch=data.draw(numbers),
        threads=data.draw(numbers),
        columns=data.draw(st.dictionaries(st.text(), st.text())),
        shard_rows=rows,
        folder="/a",
        inputs=inputs,
        shards=tuple(shards),
    )
    destination = Destination(str(tmp_path_factory.mktemp("job")))
    record(destination, job.to_json())
    assert read_job(destination) == job


def refused(destination: Destination) -> None:
    text = (
        f"{destination}/_opwright/job.json is not the record of a map that this opwright reads: name another folder "
        "for the results"
    )
    with pytest.raises(MapError, match=f"^{re.escape(text)}$"):
        read_job(destination)


def test_a_record_that_is_cut_off_anywhere_is_refused(destination: Destination, job: Job) -> None:
    whole = job.to_json()
    for length in range(0, len(whole) - 2, 7):
        record(destination, whole[:length])
        refused(destination)


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"format": None},
        {"batch": 0},
        {"batch": -1},
        {"batch": 1.5},
        {"batch": True},
        {"threads": "1"},
        {"threads": 0},
        {"shard_rows": 0},
        {"shard_rows": 3},
        {"inputs": 7},
        {"inputs": 0, "shards": []},
        {"bundle": 5},
        {"host": None},
        {"columns": ["image"]},
        {"columns": {"image": 1}},
        {"folder": 1},
        {"shards": "abc"},
        {"shards": [1, 2, 3]},
        {"shards": ["0" * 16] * 2},
        {"shards": ["../../etc/passwd"] * 3},
        {"shards": ["0" * 16, "0" * 16, "00000000000000g0"]},
        {"shards": {"a": 1}},
        {"surprise": 1},
    ],
)
def test_a_record_with_something_else_is_refused(destination: Destination, job: Job, change: dict[str, object]) -> None:
    record(destination, json.dumps({**json.loads(job.to_json()), **change}).encode())
    refused(destination)


@pytest.mark.parametrize("text", [b"", b"\xff\xfe", b"null", b"[]", b"7", b"{}", b"[" * 100_000, b'{"format": 1}'])
def test_what_is_no_record_is_refused(destination: Destination, text: bytes) -> None:
    record(destination, text)
    refused(destination)


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Job)])
def test_a_record_that_lacks_something_is_refused(destination: Destination, job: Job, name: str) -> None:
    said = json.loads(job.to_json())
    del said[name]
    record(destination, json.dumps(said).encode())
    refused(destination)


def test_a_map_goes_on_with_what_it_began_with(destination: Destination, job: Job) -> None:
    check_same(job, job.bundle, SETTINGS, destination)
    check_same(job, job.bundle, dataclasses.replace(SETTINGS, shard_rows=None), destination)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"batch": 3}, "--batch was 2, and is 3 now"),
        ({"threads": 4}, "--threads was 1, and is 4 now"),
        ({"columns": {"x": "y"}}, "--column was {}, and is {'x': 'y'} now"),
        ({"shard_rows": 4}, "--shard-rows was 2, and is 4 now"),
        ({"host": "2.14.0"}, "the PyTorch that the host was built for was 2.13.0, and is 2.14.0 now"),
    ],
)
def test_a_map_whose_settings_have_changed_is_refused(
    destination: Destination, job: Job, change: dict[str, object], text: str
) -> None:
    now = dataclasses.replace(SETTINGS, **change)  # type: ignore[arg-type]  # of each kind
    expected = re.escape(
        f"{destination} cannot be resumed: {text}, so that results would differ. Resume with what the map began with, "
        "or name another folder for the results"
    )
    with pytest.raises(MapError, match=f"^{expected}$"):
        check_same(job, job.bundle, now, destination)


def test_a_map_whose_bundle_has_changed_is_refused(destination: Destination, job: Job) -> None:
    with pytest.raises(
        MapError, match=rf"cannot be resumed: the bundle was {'d' * 64}, and is {'e' * 64} now, so that"
    ):
        check_same(job, "e" * 64, SETTINGS, destination)


def test_a_record_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / JOB_NAME).mkdir(parents=True)
    with pytest.raises(MapError, match=rf"^{tmp_path}/_opwright/job.json cannot be read: Is a directory$"):
        read_job(Destination(str(tmp_path)))
