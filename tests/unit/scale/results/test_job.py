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


def test_a_record_is_read_back_unchanged(destination: Destination, job: Job) -> None:
    assert read_job(destination) is None
    record(destination, job.to_json())
    assert read_job(destination) == job


@settings(max_examples=40)
@given(st.data())
def test_any_record_is_read_back_unchanged(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
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
        f"{destination}/_opwright/job.json is not a record of a map that this opwright supports: use another folder "
        "for the results"
    )
    with pytest.raises(MapError, match=f"^{re.escape(text)}$"):
        read_job(destination)


def test_a_truncated_record_is_rejected(destination: Destination, job: Job) -> None:
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
def test_a_record_with_an_invalid_value_is_rejected(
    destination: Destination, job: Job, change: dict[str, object]
) -> None:
    record(destination, json.dumps({**json.loads(job.to_json()), **change}).encode())
    refused(destination)


@pytest.mark.parametrize("text", [b"", b"\xff\xfe", b"null", b"[]", b"7", b"{}", b"[" * 100_000, b'{"format": 1}'])
def test_text_that_is_not_a_record_is_rejected(destination: Destination, text: bytes) -> None:
    record(destination, text)
    refused(destination)


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Job)])
def test_a_record_with_a_missing_field_is_rejected(destination: Destination, job: Job, name: str) -> None:
    said = json.loads(job.to_json())
    del said[name]
    record(destination, json.dumps(said).encode())
    refused(destination)


def test_a_map_resumes_with_its_original_settings(destination: Destination, job: Job) -> None:
    check_same(job, job.bundle, SETTINGS, destination)
    check_same(job, job.bundle, dataclasses.replace(SETTINGS, shard_rows=None), destination)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"batch": 3}, "--batch was 2, and is now 3"),
        ({"threads": 4}, "--threads was 1, and is now 4"),
        ({"columns": {"x": "y"}}, "--column was {}, and is now {'x': 'y'}"),
        ({"shard_rows": 4}, "--shard-rows was 2, and is now 4"),
        ({"host": "2.14.0"}, "the PyTorch that the host was built for was 2.13.0, and is now 2.14.0"),
    ],
)
def test_a_map_with_changed_settings_is_rejected(
    destination: Destination, job: Job, change: dict[str, object], text: str
) -> None:
    now = dataclasses.replace(SETTINGS, **change)  # type: ignore[arg-type]  # of each kind
    expected = re.escape(
        f"{destination} cannot be resumed: {text}, so results would differ. Resume with the original setting, or use "
        "another folder for the results"
    )
    with pytest.raises(MapError, match=f"^{expected}$"):
        check_same(job, job.bundle, now, destination)


def test_a_map_with_a_changed_bundle_is_rejected(destination: Destination, job: Job) -> None:
    with pytest.raises(
        MapError, match=rf"cannot be resumed: the bundle was {'d' * 64}, and is now {'e' * 64}, so results"
    ):
        check_same(job, "e" * 64, SETTINGS, destination)


def test_a_record_that_cannot_be_read_is_rejected(tmp_path: Path) -> None:
    (tmp_path / JOB_NAME).mkdir(parents=True)
    with pytest.raises(MapError, match=rf"^{tmp_path}/_opwright/job.json cannot be read: Is a directory$"):
        read_job(Destination(str(tmp_path)))
