from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from opwright.errors import MapError
from opwright.scale.inputs.item import Item
from opwright.scale.inputs.lists import items_of_list

EXPECTED = re.escape('; expected {"inputs": {"image": "a.jpg"}}, a file for each input')


def listed(folder: Path, name: str, content: bytes | str) -> list[Item]:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(items_of_list(str(path)))


def test_each_line_is_a_path_relative_to_the_folder_of_the_list(tmp_path: Path) -> None:
    text = "a.npy\n\n  b c.npy \r\n/abs/d.npy\ns3://bucket/e.npy\nlast.npy"
    names = [item.input for item in listed(tmp_path, "list.txt", text)]
    assert names == [
        f"{tmp_path}/a.npy",
        f"{tmp_path}/b c.npy",
        "/abs/d.npy",
        "s3://bucket/e.npy",
        f"{tmp_path}/last.npy",
    ]


def test_a_list_in_the_current_folder_leaves_paths_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("list.txt").write_text("a.npy\n")
    assert list(items_of_list("list.txt")) == [Item("a.npy")]


def test_paths_need_not_be_utf_8(tmp_path: Path) -> None:
    assert listed(tmp_path, "list.txt", b"\xff.npy\n") == [Item(f"{tmp_path}/\udcff.npy")]


def test_an_empty_list_has_no_inputs(tmp_path: Path) -> None:
    assert listed(tmp_path, "list.txt", "\n \n") == []


def test_each_line_is_a_request_with_a_file_for_each_input(tmp_path: Path) -> None:
    lines = [{"inputs": {"x": "a.npy", "y": "/b.npy"}}, {"inputs": {"": "c.npz"}}]
    first, second = listed(tmp_path, "list.JSONL", "\n".join(map(json.dumps, lines)))
    assert first.input == f"{tmp_path}/a.npy, /b.npy"
    assert json.loads(first.files or "") == {"x": f"{tmp_path}/a.npy", "y": "/b.npy"}
    assert json.loads(second.files or "") == {"": f"{tmp_path}/c.npz"}


@pytest.mark.parametrize(
    "line",
    [
        "a.npy",
        "[]",
        "null",
        "7",
        '"text"',
        "{}",
        '{"inputs": ["a.npy"]}',
        '{"inputs": "a.npy"}',
        '{"inputs": {"x": ""}}',
        '{"inputs": {"x": 5}}',
        '{"inputs": {"x": true}}',
        '{"inputs": {"x": null}}',
        '{"inputs": {"x": ["a.npy"]}}',
        '{"inputs": {"x": "a.npy"}, "output": "b.npy"}',
        '{"inputs": {"x": "a.npy"}',
        '{"inputs": {"x": "\\ud800.npy"}}',
        '{"inputs": {"\\ud800": "a.npy"}}',
        "[" * 100_000,
    ],
)
@pytest.mark.parametrize("is_here", [False, True])
def test_a_line_that_is_not_a_request_is_rejected_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, is_here: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    path = "list.jsonl" if is_here else f"{tmp_path}/list.jsonl"
    Path(path).write_text('{"inputs": {"x": "a.npy"}}\n\n' + line)
    with pytest.raises(MapError, match=rf"^line 3 of {path} is {re.escape(line[:100])}{EXPECTED}$"):
        list(items_of_list(path))


def test_a_request_without_files_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(
        MapError, match=rf"^line 1 of {tmp_path}/list.jsonl names no file: expected one for each input$"
    ):
        listed(tmp_path, "list.jsonl", '{"inputs": {}}')


def test_a_list_that_cannot_be_read_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "list.txt").mkdir()
    with pytest.raises(MapError, match=rf"^the list {tmp_path}/list.txt cannot be read: Is a directory$"):
        list(items_of_list(f"{tmp_path}/list.txt"))
