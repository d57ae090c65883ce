from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from opwright.errors import MapError
from opwright.scale.inputs import loader as module
from opwright.scale.inputs.item import Item
from opwright.scale.inputs.loader import Loader
from opwright.scale.rows import Failure
from opwright.scale.stopped import StoppedError

if TYPE_CHECKING:
    from opwright.scale.facts.bundle_facts import BundleFacts

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def loader(facts: BundleFacts, tmp_path: Path) -> Iterator[Loader]:
    made = Loader(facts, tmp_path)
    yield made
    made.close()


def test_files_that_the_host_can_read_are_passed_as_paths(loader: Loader) -> None:
    items = [
        Item("a.npy"),
        Item("é ü.jpg"),
        Item("b.npz"),
        Item("B.NPZ"),
        Item("a, b", json.dumps({"x": "a", "y": "b"})),
    ]
    assert list(loader.rows(items)) == [
        {"x": "a.npy"},
        {"x": "é ü.jpg"},
        {"": "b.npz"},
        {"x": "B.NPZ"},  # as in `opwright run`
        {"x": "a", "y": "b"},
    ]


@pytest.mark.parametrize("name", [b"\xff.npy", b"a\nb.npy", b"tab\t.npy", "a\u00a0b.npy".encode()])
def test_a_file_whose_name_is_not_printable_text_is_read_here(loader: Loader, tmp_path: Path, name: bytes) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_bytes(b"content")
    assert list(loader.rows([Item(os.fsdecode(name))])) == [{"x": b"content"}]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("miss\ning", r"the input file miss\ning cannot be read: No such file or directory"),
        ("\udcff", r"the input file \xff cannot be read: No such file or directory"),
        ("a\0b", r"the input file a\x00b cannot be read: embedded null byte"),
        ("\x1b[2J" + "a" * 300, rf"the input file \x1b[2J{'a' * 300} cannot be read: File name too long"),
        ("\t/..", r"the input file \t/.. cannot be read: No such file or directory"),
    ],
)
def test_a_file_that_cannot_be_read_is_a_failure_with_a_one_line_message(
    loader: Loader, name: str, message: str
) -> None:
    assert list(loader.rows([Item(name)])) == [Failure("input_unreadable", message)]


def test_a_row_of_a_table_has_its_values(loader: Loader, tmp_path: Path) -> None:
    values = pa.array([b"abc", None], pa.binary())
    pq.write_table(pa.table({"x": values}), tmp_path / "t.parquet")
    items = [Item("t.parquet#0", None, "t.parquet", 0), Item("t.parquet#1", None, "t.parquet", 1)]
    assert list(loader.rows(items)) == [
        {"x": b"abc"},
        Failure("input_unreadable", "t.parquet#1: the column x has no value"),
    ]


class Remote:
    """A remote file system that returns the given answers in turn."""

    def __init__(self, answers: dict[str, list[Any]]) -> None:
        self.answers = answers

    def __call__(self, url: str) -> tuple[Remote, str]:
        return self, url

    def cat_file(self, path: str, **_range: int) -> bytes:
        answer = self.answers[path].pop(0)
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, bytes)
        return answer


def test_remote_files_are_read_ahead_and_keep_their_order(loader: Loader, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {f"s3://b/{number}": [b"%d" % number] for number in range(50)}
    monkeypatch.setattr(module, "file_system", Remote(answers))
    items = [Item(f"s3://b/{number}" if number % 3 else "local.npy") for number in range(50)]
    expected = [{"x": b"%d" % number if number % 3 else "local.npy"} for number in range(50)]
    assert list(loader.rows(items)) == expected


def test_a_remote_file_that_does_not_exist_is_a_failure(loader: Loader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "file_system", Remote({"s3://b/a": [FileNotFoundError("b/a")]}))
    message = "the input file s3://b/a cannot be read: b/a"
    assert list(loader.rows([Item("s3://b/a")])) == [Failure("input_unreadable", message)]


def test_a_store_that_fails_temporarily_is_tried_again(loader: Loader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAUSES_S", (0.0, 0.0, 0.0))
    answers = [RuntimeError("not now"), OSError(5, "Input/output error"), b"content"]
    monkeypatch.setattr(module, "file_system", Remote({"s3://b/a": answers}))
    assert list(loader.rows([Item("s3://b/a")])) == [{"x": b"content"}]


def test_a_store_that_stops_responding_stops_the_map(loader: Loader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAUSES_S", (0.0, 0.0))
    monkeypatch.setattr(module, "file_system", Remote({"s3://b/a": [RuntimeError("not\nnow")] * 2}))
    text = r"^s3://b/a cannot be read: not now\. Resume the map when its file system responds again$"
    with pytest.raises(MapError, match=text):
        list(loader.rows([Item("s3://b/a")]))


def test_a_denied_file_is_a_failure_if_others_can_be_read(loader: Loader, monkeypatch: pytest.MonkeyPatch) -> None:
    answers: dict[str, list[Any]] = {"s3://b/a": [b"content", b"c"], "s3://b/b": [PermissionError("Forbidden")]}
    monkeypatch.setattr(module, "file_system", Remote(answers))
    assert list(loader.rows([Item("s3://b/a")])) == [{"x": b"content"}]
    message = "the input file s3://b/b cannot be read: Forbidden"
    assert list(loader.rows([Item("s3://b/b")])) == [Failure("input_unreadable", message)]


def test_expired_credentials_stop_the_map(loader: Loader, monkeypatch: pytest.MonkeyPatch) -> None:
    expired = PermissionError("The token has expired")
    monkeypatch.setattr(module, "_PAUSES_S", (0.0,))
    answers: dict[str, list[Any]] = {"s3://b/a": [b"content", expired], "s3://b/b": [expired]}
    monkeypatch.setattr(module, "file_system", Remote(answers))
    assert list(loader.rows([Item("s3://b/a")])) == [{"x": b"content"}]
    with pytest.raises(MapError, match=r"^s3://b/b cannot be read: The token has expired\. Resume the map"):
        list(loader.rows([Item("s3://b/b")]))


def test_a_file_is_passed_to_the_first_input(facts: BundleFacts, tmp_path: Path) -> None:
    two = replace(facts, inputs=(replace(facts.inputs[0], name="image"), *facts.inputs))
    assert list(Loader(two, tmp_path).rows([Item("a.jpg")])) == [{"image": "a.jpg"}]


def test_a_stopped_loader_does_not_wait_for_a_read_that_never_ends(
    loader: Loader, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, ended = threading.Event(), threading.Event()

    class Silent:
        def cat_file(self, _path: str) -> bytes:
            asked.set()
            ended.wait()
            return b""

    monkeypatch.setattr(module, "file_system", lambda url: (Silent(), url))

    def stop() -> None:
        asked.wait()
        loader.close()

    stopper = threading.Thread(target=stop)
    stopper.start()
    with pytest.raises(StoppedError):
        list(loader.rows([Item("s3://b/a")]))
    stopper.join()
    ended.set()
