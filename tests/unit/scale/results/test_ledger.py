from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from opwright.scale.results.columns import Columns
from opwright.scale.results.ledger import Done, Ledger, Shard
from opwright.scale.results.shard_file import ShardFile
from opwright.scale.rows import Answer, Array, Failure

if TYPE_CHECKING:
    from opwright.scale.facts.bundle_facts import BundleFacts
    from opwright.scale.results.destination import Destination
    from opwright.scale.results.job import Job

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def ledger(job: Job, destination: Destination) -> Ledger:
    return Ledger(job, destination)


@pytest.fixture
def folder(destination: Destination) -> Path:
    assert destination.folder
    return destination.folder


def write(destination: Destination, facts: BundleFacts, shard: Shard, failed: int = 0) -> None:
    with destination.writing(shard.name) as path:
        file = ShardFile(path, Columns(facts.outputs), shard.first)
        for row in range(shard.rows):
            failure = Failure("run_failed", "it failed") if row < failed else None
            outputs = () if failure else (Array("float32", (1, 2), bytes(8)),)
            file.add(str(row), Answer(outputs, failure))
        file.close()


def test_shards_have_their_rows_and_unique_names(ledger: Ledger) -> None:
    assert [ledger.shard(number) for number in range(3)] == [
        Shard(0, 0, 2, "part-00000000-0000000000000000.parquet"),
        Shard(1, 2, 2, "part-00000001-0000000000000001.parquet"),
        Shard(2, 4, 1, "part-00000002-0000000000000002.parquet"),
    ]


def test_a_complete_file_is_done(ledger: Ledger, destination: Destination, facts: BundleFacts) -> None:
    assert ledger.done() == []
    assert [shard.number for shard in ledger.missing([])] == [0, 1, 2]
    write(destination, facts, ledger.shard(2))
    write(destination, facts, ledger.shard(0), failed=1)
    assert ledger.done() == [Done(ledger.shard(0), 1), Done(ledger.shard(2), 0)]
    assert ledger.missing(ledger.done()) == [ledger.shard(1)]
    assert ledger.find(ledger.shard(0)) == Done(ledger.shard(0), 1)
    assert ledger.find(ledger.shard(1)) is None


def test_a_truncated_or_damaged_file_is_missing(
    ledger: Ledger, destination: Destination, facts: BundleFacts, folder: Path
) -> None:
    shard = ledger.shard(1)
    write(destination, facts, shard)
    path = folder / shard.name
    whole = path.read_bytes()
    for content in (b"", whole[:4], whole[:-1], whole[: len(whole) // 2], whole[len(whole) // 2 :], b"\0" * len(whole)):
        path.write_bytes(content)
        assert ledger.done() == []
        assert ledger.find(shard) is None
    path.write_bytes(whole)
    assert ledger.done() == [Done(shard, 0)]


def test_a_file_of_another_map_is_missing(
    ledger: Ledger, destination: Destination, facts: BundleFacts, folder: Path
) -> None:
    path = folder / ledger.shard(0).name
    write(destination, facts, ledger.shard(2))
    (folder / ledger.shard(2).name).rename(path)  # with another number of rows
    assert ledger.done() == []
    pq.write_table(pa.table({"id": [0, 1]}), path)  # without the number of rows that failed
    assert ledger.done() == []
    path.unlink()
    path.mkdir()
    assert ledger.done() == []
    path.rmdir()
    write(destination, facts, Shard(0, 0, 2, "part-00000000-ffffffffffffffff.parquet"))
    write(destination, facts, Shard(0, 0, 2, "part-00000007-0000000000000000.parquet"))
    assert ledger.done() == []
    assert len(ledger.missing(ledger.done())) == 3


def test_an_invalid_number_of_failed_rows_is_rejected(ledger: Ledger, folder: Path) -> None:
    folder.mkdir()
    for said in (b"", b"many", b"-1", b"3"):
        with pq.ParquetWriter(folder / ledger.shard(0).name, pa.schema([("id", pa.int64())])) as writer:
            writer.write_table(pa.table({"id": [0, 1]}))
            writer.add_key_value_metadata({b"opwright.failed": said})
        assert ledger.done() == []
