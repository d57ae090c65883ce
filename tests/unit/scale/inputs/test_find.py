from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from opwright.errors import MapError
from opwright.scale.inputs.find import find_items

if TYPE_CHECKING:
    from tests.unit.scale.conftest import Files


def found(*arguments: str | Path, below: Path | None = None) -> list[str]:
    """The inputs that the arguments name, as paths relative to a folder."""
    names = [item.input for item in find_items(map(str, arguments), ("x",))]
    return names if below is None else [os.path.relpath(name, below) for name in names]


def test_a_named_file_is_an_input_whatever_its_ending(files: Files) -> None:
    folder = files("a.bin", "b")
    assert found(folder / "b", folder / "a.bin", below=folder) == ["b", "a.bin"]


def test_a_folder_yields_the_files_with_known_endings_below_it(files: Files) -> None:
    folder = files(
        "b.PNG", "a.jpg", "a/z.npz", "a/deep/er/c.npy", "d.jpeg", "notes.txt", "list.jsonl", "code.py", "npy"
    )
    assert found(folder, below=folder) == ["a/deep/er/c.npy", "a/z.npz", "a.jpg", "b.PNG", "d.jpeg"]


def test_hidden_files_and_files_in_hidden_folders_are_skipped(files: Files) -> None:
    folder = files(".a.npy", ".hidden/b.npy", "c.npy", "._c.npy", "d/.e.npy")
    assert found(folder, below=folder) == ["c.npy"]
    assert found(f"{folder}/**/*.npy", below=folder) == ["c.npy"]
    assert found(folder / ".a.npy", below=folder) == [".a.npy"]
    assert found(f"{folder}/.*.npy", below=folder) == ["._c.npy", ".a.npy"]


def test_names_are_sorted_byte_by_byte(files: Files) -> None:
    folder = files("é.npy", "z.npy", "Z.npy", "a10.npy", "a9.npy", "ß.npy", "\U0001f600.npy", "\uffff.npy")
    expected = ["Z.npy", "a10.npy", "a9.npy", "z.npy", "ß.npy", "é.npy", "\uffff.npy", "\U0001f600.npy"]
    assert found(folder, below=folder) == expected
    assert found(f"{folder}/*", below=folder) == expected


def test_a_folder_whose_name_ends_like_a_picture_is_a_folder(files: Files) -> None:
    folder = files("x.jpg/a.npy", "y.parquet/b.npy")
    assert found(folder, below=folder) == ["x.jpg/a.npy", "y.parquet/b.npy"]
    assert found(folder / "x.jpg", below=folder) == ["x.jpg/a.npy"]
    with pytest.raises(MapError, match="has no inputs"):
        found(f"{folder}/*.jpg")


def test_trailing_slashes_of_a_folder_change_nothing(files: Files) -> None:
    folder = files("a.npy")
    assert found(f"{folder}/") == found(f"{folder}//") == found(folder) == [f"{folder}/a.npy"]


def test_inputs_are_in_the_order_of_the_arguments_and_may_repeat(files: Files) -> None:
    folder = files("a.npy", "b.npy")
    assert found(folder / "b.npy", folder, below=folder) == ["b.npy", "a.npy", "b.npy"]


@pytest.mark.parametrize("name", ["with space.npy", "line\nbreak.npy", "[1].npy", "a*b?.npy", "{x}.npy", "tab\t.npy"])
def test_a_name_may_contain_any_character(files: Files, name: str) -> None:
    folder = files(name, "1.npy", "other.npy")
    assert found(folder / name, below=folder) == [name]
    assert name in found(folder, below=folder)


def test_a_name_need_not_be_utf_8(files: Files) -> None:
    folder = files("a.npy")
    raw = os.fsencode(folder) + b"/\xff\xfe.npy"
    Path(os.fsdecode(raw)).touch()
    assert [os.fsencode(name) for name in found(folder)] == [os.fsencode(folder) + b"/a.npy", raw]
    assert os.fsencode(found(f"{folder}/*[!a].npy")[0]) == raw


def test_patterns_match_in_every_part_of_a_path(files: Files) -> None:
    folder = files("a1/x.npy", "a2/x.npy", "b/x.npy", "a1/y.jpg", "a3/deep/x.npy", "a4")
    assert found(f"{folder}/a*/x.npy", below=folder) == ["a1/x.npy", "a2/x.npy"]
    assert found(f"{folder}/a[13]/*", below=folder) == ["a1/x.npy", "a1/y.jpg"]
    assert found(f"{folder}/a?", below=folder) == ["a4"]
    assert found(f"{folder}/a?/../b/x.n*", below=folder)[0] == "b/x.npy"


def test_two_stars_match_any_number_of_folders_and_yield_each_file_once(files: Files) -> None:
    folder = files("x.npy", "a/x.npy", "a/b/x.npy", "a/b/c/x.npy", "a/b/c/y.jpg")
    everywhere = ["a/b/c/x.npy", "a/b/x.npy", "a/x.npy", "x.npy"]
    assert found(f"{folder}/**/x.npy", below=folder) == everywhere
    assert found(f"{folder}/**/**/x.npy", below=folder) == everywhere
    assert found(f"{folder}/**/[a-c]/**/x.npy", below=folder) == everywhere[:3]
    assert found(f"{folder}/a/**", below=folder) == ["a/b/c/x.npy", "a/b/c/y.jpg", "a/b/x.npy", "a/x.npy"]


def test_relative_patterns_stay_relative(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = files("a/x.npy", "y.npy")
    monkeypatch.chdir(folder)
    assert found("*.npy") == ["y.npy"]
    assert found("**/*.npy") == ["a/x.npy", "y.npy"]
    assert found("./*.npy") == ["./y.npy"]
    assert found(".") == ["./a/x.npy", "./y.npy"]


def test_a_link_to_a_file_is_an_input_and_a_link_to_a_folder_is_not_followed(files: Files) -> None:
    folder = files("a/x.npy", "target.npy")
    (folder / "b").symlink_to(folder / "a")
    (folder / "link.npy").symlink_to("target.npy")
    (folder / "broken.npy").symlink_to("nowhere")
    expected = ["a/x.npy", "broken.npy", "link.npy", "target.npy"]
    assert found(folder, below=folder) == expected
    assert found(f"{folder}/**/*.npy", below=folder) == expected
    assert found(folder / "b", below=folder) == ["b/x.npy"]
    assert found(f"{folder}/b/*.npy", below=folder) == ["b/x.npy"]


def test_pipes_in_a_folder_are_skipped(files: Files) -> None:
    folder = files("a.npy")
    os.mkfifo(folder / "pipe.npy")
    assert found(folder, below=folder) == found(f"{folder}/*", below=folder) == ["a.npy"]


def test_loops_of_links_terminate(files: Files) -> None:
    folder = files("a/x.npy")
    (folder / "a/up").symlink_to(folder)
    (folder / "self").symlink_to("self")
    (folder / "self.npy").symlink_to("self.npy")
    assert found(folder, below=folder) == ["a/x.npy", "self.npy"]
    assert found(f"{folder}/**/*.npy", below=folder) == ["a/x.npy", "self.npy"]


def test_the_results_of_a_map_below_a_folder_are_skipped(files: Files) -> None:
    folder = files("a.npy", "out/_opwright/inputs.parquet", "out/part-0.parquet", "b/c/_opwright/job.json", "b/c/d.npy")
    assert found(folder, below=folder) == ["a.npy"]
    assert found(f"{folder}/**/*.npy", below=folder) == ["a.npy"]


def test_an_argument_without_inputs_is_rejected(files: Files) -> None:
    folder = files("notes.txt")
    text = re.escape(f"{folder} has no inputs: expected files with the endings .jpg, .jpeg, .png, .npy, .npz, .parquet")
    with pytest.raises(MapError, match=f"^{text}. Pass other files one by one, or in a list$"):
        found(folder)
    with pytest.raises(MapError, match=r"\*\.npy has no inputs: expected files with the endings "):
        found(f"{folder}/*.npy")
    with pytest.raises(
        MapError, match=r"/nothing does not exist: expected a file, a folder, or a pattern such as 'photos/\*\.jpg'$"
    ):
        found(folder / "nothing")


def test_an_empty_argument_is_rejected_and_not_read_as_the_root() -> None:
    with pytest.raises(MapError, match=r"^an input is an empty string: expected a file, a folder, or a pattern"):
        found("")


def test_a_folder_that_cannot_be_listed_is_rejected(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = files("a/b.npy")

    def refuse(path: str) -> object:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(MapError, match=rf"^{folder} cannot be listed: Permission denied$"):
        found(folder)


def test_a_name_that_is_too_long_is_rejected() -> None:
    with pytest.raises(MapError, match=r"^a{300} cannot be listed: File name too long$"):
        found("a" * 300)


def test_remote_folders_yield_the_same_files_as_local_ones(files: Files) -> None:
    fsspec = pytest.importorskip("fsspec")
    folder = files("a/z.npy", "a.npy", "a-b/y.jpg", ".h/x.npy", "b/.i.npy", "notes.txt", "o/_opwright/j.npy", "o/p.npy")
    memory = fsspec.filesystem("memory")
    memory.put(str(folder), "/remote", recursive=True)
    expected = found(folder, below=folder)
    assert [name.removeprefix("memory:///remote/") for name in found("memory://remote")] == expected
    assert [name.removeprefix("memory:///remote/") for name in found("memory://remote/*.npy")] == ["a.npy"]
    memory.rm("/remote", recursive=True)
    with pytest.raises(MapError, match=r"^memory://remote does not exist: expected a file, a folder or a pattern$"):
        found("memory://remote")


def test_an_unknown_scheme_is_rejected() -> None:
    pytest.importorskip("fsspec")
    with pytest.raises(MapError, match=r"^nowhere://a cannot be used: Protocol not known: nowhere"):
        found("nowhere://a")
