from __future__ import annotations

import os
from pathlib import Path

import pytest

from opwright.errors import OpwrightError, SpecError
from opwright.scaffold.create import create
from opwright.scaffold.flavour import Flavour
from opwright.spec import library_at


def everything_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_the_folders_name_becomes_the_namespace(tmp_path: Path) -> None:
    created = create(tmp_path / "mine")
    assert (created.folder, created.namespace, created.flavour) == (tmp_path / "mine", "mine", Flavour.CPU)
    assert library_at(tmp_path / "mine").namespace == "mine"
    assert "OPWRIGHT_IMPL(mine, CPU, m)" in (tmp_path / "mine/cpu.cpp").read_text()


@pytest.mark.parametrize(
    ("flavour", "files"),
    [
        (Flavour.CPU, ("op.py", "cpu.cpp")),
        (Flavour.CUDA, ("op.py", "cpu.cpp", "cuda.cu", "formulas.h", "tensors.h")),
        (Flavour.OPENCV, ("op.py", "cpu.cpp")),
        (Flavour.PYTHON_ONLY, ("op.py",)),
    ],
)
def test_each_flavour_has_these_files_and_no_others(tmp_path: Path, flavour: Flavour, files: tuple[str, ...]) -> None:
    assert create(tmp_path / "mine", flavour).files == files
    assert everything_in(tmp_path / "mine") == sorted(files)


def test_missing_parent_folders_are_created(tmp_path: Path) -> None:
    create(tmp_path / "a/b/mine")
    assert everything_in(tmp_path) == ["a", "a/b", "a/b/mine", "a/b/mine/cpu.cpp", "a/b/mine/op.py"]


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    create(tmp_path / "mine", Flavour.PYTHON_ONLY)
    assert everything_in(tmp_path) == ["mine", "mine/op.py"]


def test_the_umask_determines_who_can_read_the_folder(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    create(tmp_path / "mine")
    assert (tmp_path / "mine").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("my-op", "'my-op' is not an identifier; use letters, digits and underscores"),
        ("my op", "'my op' is not an identifier"),
        ("2nd", "'2nd' is not an identifier"),
        ("größe", "'größe' is not an identifier"),
        (
            "class",
            "'class' is a Python keyword: torch.ops.class is a syntax error. Choose a name such as my_class",
        ),
        ("None", "'None' is a Python keyword"),
        ("aten", "'aten' is reserved for PyTorch; choose another one, such as 'my_aten'"),
        ("quantized", "'quantized' is reserved for PyTorch"),
        ("load_library", "'load_library' is reserved for PyTorch"),
    ],
)
def test_a_name_that_is_not_a_valid_namespace_is_rejected(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(SpecError) as raised:
        create(tmp_path / "above" / name)
    assert said in str(raised.value)
    assert everything_in(tmp_path) == []


def test_a_folder_that_is_not_empty_is_not_changed(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    for name in "abcde":
        (folder / name).write_text("precious")
    with pytest.raises(SpecError, match=r"mine exists and contains a, b, c and 2 more: name a new or empty folder"):
        create(folder)
    assert everything_in(tmp_path) == ["mine", *(f"mine/{name}" for name in "abcde")]


def test_a_file_is_not_changed(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    with pytest.raises(SpecError, match=r"mine exists and is not a folder: choose another name"):
        create(tmp_path / "mine")
    assert (tmp_path / "mine").read_text() == "precious"


def test_the_current_folder_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path / "mine")
    with pytest.raises(SpecError, match="is the current folder: name a new folder in it"):
        create(Path())


def test_a_full_disk_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = Path.write_text

    def full_after_one(path: Path, text: str, encoding: str | None = None) -> int:
        if path.name == "op.py":
            return write(path, text, encoding)
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(Path, "write_text", full_after_one)
    with pytest.raises(OpwrightError, match=r"mine cannot be created: No space left on device"):
        create(tmp_path / "above/mine")
    assert everything_in(tmp_path) == []


def test_two_processes_that_create_the_same_folder_never_overwrite_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Path.rename

    def meanwhile(draft: Path, target: Path) -> Path:
        target.mkdir()
        (target / "op.py").write_text("the first one's")
        return rename(draft, target)

    monkeypatch.setattr(Path, "rename", meanwhile)
    with pytest.raises(OpwrightError, match="mine cannot be created: Directory not empty"):
        create(tmp_path / "mine")
    assert everything_in(tmp_path) == ["mine", "mine/op.py"]
    assert (tmp_path / "mine/op.py").read_text() == "the first one's"


def test_a_folder_that_cannot_be_created_is_an_error_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(
        OpwrightError, match=r"file/mine cannot be created: Not a directory\. Name a folder where you have"
    ):
        create(tmp_path / "file/mine")
