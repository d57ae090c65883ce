"""Inputs and results in an S3-compatible store, with a real server on loopback and s3fs."""

from __future__ import annotations

import itertools
import signal
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import opwright
from tests.integration.scale.conftest import WAIT, Inputs, RunMap, StartMap, failures, rows, state, wait_until

s3fs = pytest.importorskip("s3fs")
moto_server = pytest.importorskip("moto.server")

_numbers = itertools.count()
WORDS = ("--workers", "2", "--shard-rows", "2")


@dataclass
class Store:
    """A bucket."""

    files: Any
    bucket: str
    server: Any
    port: int

    @property
    def url(self) -> str:
        return f"s3://{self.bucket}"

    def put(self, folder: Path) -> str:
        """Copy a folder into the bucket, and return its URL."""
        self.files.put(str(folder), f"{self.bucket}/{folder.name}", recursive=True)
        return f"{self.url}/{folder.name}"

    def get(self, name: str, folder: Path) -> Path:
        """Copy a folder from the bucket."""
        self.files.invalidate_cache()
        self.files.get(f"{self.bucket}/{name}", str(folder), recursive=True)
        return folder

    def names(self, name: str) -> list[str]:
        self.files.invalidate_cache()
        return [path.rpartition("/")[2] for path in self.files.find(f"{self.bucket}/{name}")]


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    server = moto_server.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    variables = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_MAX_ATTEMPTS": "1",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    s3fs.S3FileSystem.clear_instance_cache()
    files = s3fs.S3FileSystem(endpoint_url=variables["AWS_ENDPOINT_URL"], use_listings_cache=False)
    bucket = f"bucket-{next(_numbers)}"  # another server sees the data of this one
    files.mkdir(bucket)
    yield Store(files, bucket, server, port)
    server.stop()
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.fixture
def waiting(inputs: Inputs, gate: Path) -> Inputs:
    inputs.add(*map(float, range(11)), WAIT, *map(float, range(12, 20)))
    return inputs


def test_a_map_from_s3_to_s3_writes_the_table_of_a_local_one(
    bundle: Path, inputs: Inputs, store: Store, tmp_path: Path
) -> None:
    inputs.add(*map(float, range(20)))
    inputs.replace(7, b"damaged")
    (inputs.folder / ".hidden.npy").write_bytes(b"")
    url = store.put(inputs.folder)
    opwright.map(bundle, inputs.folder, output=tmp_path / "local", shard_rows=4)
    summary = opwright.map(bundle, url, output=f"{store.url}/results", shard_rows=4)
    assert (summary.inputs, summary.failed) == (20, 1)
    table, local = rows(store.get("results", tmp_path / "remote")), rows(tmp_path / "local")
    assert [row["input"] for row in table] == [f"{url}/{number:05d}.npy" for number in range(20)]
    assert [row["output_0"] for row in table] == [row["output_0"] for row in local]
    assert list(failures(tmp_path / "remote")) == [7]
    assert opwright.map(bundle, output=f"{store.url}/results", resume=True).resumed == 20


def test_a_missing_key_is_a_row_that_fails(bundle: Path, inputs: Inputs, store: Store, tmp_path: Path) -> None:
    inputs.add(1.0, 2.0)
    url = store.put(inputs.folder)
    (tmp_path / "list.txt").write_text(f"{url}/00000.npy\n{url}/nothing.npy\n{url}/00001.npy\n")
    opwright.map(bundle, tmp_path / "list.txt", output=tmp_path / "out")
    ((place, (status, message)),) = failures(tmp_path / "out").items()
    assert (place, status) == (1, "input_unreadable")
    assert message.startswith(f"the input file {url}/nothing.npy cannot be read: ")


def test_tables_and_lists_are_read_from_s3(bundle: Path, inputs: Inputs, store: Store, tmp_path: Path) -> None:
    pq, pa = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    inputs.add(1.0, 2.0)
    (inputs.folder / "list.txt").write_text("00001.npy\n")
    pq.write_table(pa.table({"image": ["00001.npy", "00000.npy"]}), inputs.folder / "t.parquet")
    url = store.put(inputs.folder)
    opwright.map(bundle, [f"{url}/list.txt", f"{url}/t.parquet", f"{url}/*.npy"], output=tmp_path / "out")
    names = [row["input"].removeprefix(f"{url}/") for row in rows(tmp_path / "out")]
    assert names == ["00001.npy", "t.parquet#0", "t.parquet#1", "00000.npy", "00001.npy"]
    assert failures(tmp_path / "out") == {}


@pytest.mark.sample(1)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_or_interrupted_map_can_be_resumed(
    start_map: StartMap,
    run_map: RunMap,
    waiting: Inputs,
    store: Store,
    gate: Path,
    tmp_path: Path,
    number: signal.Signals,
) -> None:
    url = store.put(waiting.folder)
    words = (url, *WORDS)
    program = start_map(*words, output=f"{store.url}/results")
    wait_until(lambda: sum(name.startswith("part-") for name in store.names("results")) >= 3, "three files are there")
    program.wait_for_hosts(1)
    assert program.end(number).returncode == (130 if number == signal.SIGINT else -number)
    gate.touch()
    done = run_map(*words, "--resume", output=f"{store.url}/results")
    assert done.returncode == 0, done.stderr
    assert "already present" in done.stdout
    undisturbed = run_map(*words, output=f"{store.url}/undisturbed")
    assert undisturbed.returncode == 0, undisturbed.stderr
    expected = state(store.get("undisturbed", tmp_path / "undisturbed"))
    assert state(store.get("results", tmp_path / "results")) == expected


def test_a_server_that_stops_responding_stops_the_map_which_can_be_resumed(
    start_map: StartMap, run_map: RunMap, waiting: Inputs, store: Store, gate: Path, tmp_path: Path
) -> None:
    url = store.put(waiting.folder)
    results = f"{store.url}/results"
    program = start_map(url, *WORDS, output=results)
    wait_until(lambda: sum(name.startswith("part-") for name in store.names("results")) >= 3, "three files are there")
    program.wait_for_hosts(1)
    store.server.stop()
    gate.touch()
    done = program.end()
    assert done.returncode == 9
    assert done.stderr.startswith(f"error: {store.url}/")
    assert done.stderr.endswith(". Resume the map when its file system responds again\n")
    assert done.stderr.count("\n") == 1
    again = moto_server.ThreadedMotoServer("127.0.0.1", store.port, verbose=False)
    again.start()
    try:
        done = run_map(url, *WORDS, "--resume", output=results)
        assert done.returncode == 0, done.stderr
        assert "already present" in done.stdout
        assert len(rows(store.get("results", tmp_path / "results"))) == 20
        assert failures(tmp_path / "results") == {}
    finally:
        again.stop()


def test_a_server_that_never_responds_is_reported(run_map: RunMap, inputs: Inputs, store: Store) -> None:
    inputs.add(1.0)
    store.server.stop()
    done = run_map(inputs.folder, output=f"{store.url}/results")
    assert done.returncode == 9
    assert done.stderr.startswith(f"error: {store.url}/results")
    assert done.stderr.endswith(". Resume the map when its file system responds again\n")
    done = run_map(f"{store.url}/inputs", output=inputs.folder.parent / "out")
    assert done.returncode == 9
    assert done.stderr.startswith(f"error: {store.url}/inputs cannot be listed: ")
    assert not (inputs.folder.parent / "out").exists()


def test_a_silent_server_does_not_block_an_interrupted_map(start_map: StartMap, tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("s3://bucket/a.npy\n")
    variables = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_DEFAULT_REGION": "us-east-1"}
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        program = start_map(tmp_path / "list.txt", output=tmp_path / "out", AWS_ENDPOINT_URL=url, **variables)
        connection, _ = server.accept()
        with connection:
            program.wait_for_hosts(1)
            done = program.end(signal.SIGINT)
    assert done.returncode == 130
    assert done.stderr.endswith(": 0 of 1 done, 0 failed. Run the same command with --resume to continue\n")
