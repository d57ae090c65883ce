from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from opwright.scale.facts.bundle_facts import BundleFacts, OutputFacts
from opwright.scale.results import shard_file as module
from opwright.scale.results.columns import Columns
from opwright.scale.results.shard_file import ShardFile
from opwright.scale.rows import Answer, Array, Failure

pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

ROW = Answer((Array("float32", (1, 2), bytes(8)),))


def write(path: Path, columns: Columns, answers: list[Answer]) -> None:
    file = ShardFile(path, columns, 100)
    for number, answer in enumerate(answers):
        file.add(f"{number}", answer)
    file.close()


def test_row_groups_are_bounded_by_their_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = Columns([OutputFacts("y", "uint8", (1000,), 1)])
    monkeypatch.setattr(module, "_GROUP_BYTES", 5 * (1000 + module._ROW_BYTES))
    write(tmp_path / "t", columns, [Answer((Array("uint8", (1000,), bytes(1000)),))] * 12)
    metadata = pq.read_metadata(tmp_path / "t")
    assert [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)] == [5, 5, 2]
    assert pq.read_table(tmp_path / "t")["id"].to_pylist() == list(range(100, 112))


def test_row_groups_without_outputs_are_bounded(
    tmp_path: Path, facts: BundleFacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_GROUP_BYTES", 4 * module._ROW_BYTES)
    write(tmp_path / "t", Columns(facts.outputs), [Answer(failure=Failure("run_failed", ""))] * 9)
    assert pq.read_metadata(tmp_path / "t").num_row_groups == 3


def test_the_number_of_failed_rows_is_in_the_file(tmp_path: Path, facts: BundleFacts) -> None:
    write(tmp_path / "t", Columns(facts.outputs), [ROW, Answer(failure=Failure("run_failed", "it failed")), ROW])
    assert pq.read_metadata(tmp_path / "t").metadata[b"opwright.failed"] == b"1"


def test_the_same_rows_produce_the_same_bytes(tmp_path: Path, facts: BundleFacts) -> None:
    for name in "ab":
        answers = [ROW._replace(seconds=float(ord(name))), Answer(failure=Failure("run_failed", "it failed"))]
        write(tmp_path / name, Columns(facts.outputs), answers)
    assert len({hashlib.sha256((tmp_path / name).read_bytes()).digest() for name in "ab"}) == 1


def test_an_abandoned_file_is_closed(tmp_path: Path, facts: BundleFacts) -> None:
    file = ShardFile(tmp_path / "t", Columns(facts.outputs), 0)
    file.add("a", ROW)
    file.abandon()
    assert b"opwright.failed" not in (tmp_path / "t").read_bytes()
