from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from opwright.storage import rename
from opwright.storage.rename import exchange, rename_to_free

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(params=["linux", "a-file-system-without-them"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    def lacks(_source: Path, target: Path, _flag: int) -> None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), str(target))

    if request.param != "linux":
        monkeypatch.setattr(rename, "_rename", lacks)
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    return tmp_path


def test_two_folders_swap(folder: Path) -> None:
    exchange(folder / "one", folder / "other")
    assert (folder / "one" / "file").read_text() == "other"
    assert (folder / "other" / "file").read_text() == "one"
    assert sorted(path.name for path in folder.iterdir()) == ["one", "other"]


def test_a_failed_swap_changes_nothing(folder: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        exchange(folder / "absent", folder / "other")
    assert (folder / "other" / "file").read_text() == "other"
    assert sorted(path.name for path in folder.iterdir()) == ["one", "other"]


def test_nothing_is_renamed_over_an_existing_path_even_an_empty_folder(folder: Path) -> None:
    (folder / "empty").mkdir()
    (folder / "link").symlink_to("nowhere")
    for name in ("other", "empty", "link"):
        with pytest.raises(FileExistsError):
            rename_to_free(folder / "one", folder / name)
    rename_to_free(folder / "one", folder / "free")
    assert (folder / "free" / "file").read_text() == "one"
