"""The file changes that `--watch` detects."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

import pytest

from opwright.cli.changes import POLLING, Changes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FAR = 60.0


def noticed(changes: Changes) -> set[str]:
    """The names of the files that changed, after waiting as long as necessary."""
    end = time.monotonic() + FAR
    while time.monotonic() < end:
        if changed := changes.wait():
            return {path.name for path in changed}
    return set()


def settled(changes: Changes) -> Changes:
    """Waits once, so that the folders are watched."""
    assert changes.wait() == []
    return changes


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    (folder / "cpu").mkdir(parents=True)
    (folder / "op.py").write_text("library")
    (folder / "cpu/kernel.cpp").write_text("kernel")
    return folder


@pytest.mark.parametrize("polling", ["", "1"])
def test_a_change_is_detected_for_every_way_of_saving(
    root: Path, monkeypatch: pytest.MonkeyPatch, polling: str
) -> None:
    monkeypatch.setenv(POLLING, polling)
    changes = settled(Changes(root))
    kernel = root / "cpu/kernel.cpp"
    kernel.write_text("written over")
    assert noticed(changes) == {"kernel.cpp"}
    draft = root / "cpu/.kernel.cpp.swp"
    draft.write_text("renamed over")
    draft.replace(kernel)
    assert noticed(changes) == {"kernel.cpp"}
    kernel.unlink()
    assert noticed(changes) == {"kernel.cpp"}
    kernel.write_text("back")
    assert noticed(changes) == {"kernel.cpp"}


def test_new_files_and_folders_are_detected(root: Path) -> None:
    changes = settled(Changes(root))
    (root / "cpu/new/deep").mkdir(parents=True)
    (root / "cpu/new/deep/missing.h").write_text("#pragma once")
    assert noticed(changes) == {"missing.h"}
    (root / "cpu/new/deep/missing.h").write_text("#pragma once //")
    assert noticed(changes) == {"missing.h"}


def test_a_replaced_folder_is_watched_again(root: Path) -> None:
    changes = settled(Changes(root))
    shutil.rmtree(root / "cpu")
    assert noticed(changes) == {"kernel.cpp"}
    (root / "cpu").mkdir()
    (root / "cpu/kernel.cpp").write_text("checked out")
    assert noticed(changes) == {"kernel.cpp"}
    (root / "cpu/kernel.cpp").write_text("edited")
    assert noticed(changes) == {"kernel.cpp"}


def test_outside_the_library_only_files_that_were_read_are_watched(root: Path, tmp_path: Path) -> None:
    common = tmp_path / "common"
    common.mkdir()
    (common / "shared.h").write_text("1")
    (common / "data.txt").write_text("1")
    changes = Changes(root)
    assert changes.include([common / "shared.h", root / "op.py"], time.time_ns() + 10**12) == []
    assert changes.count == 3
    settled(changes)
    (common / "other.h").write_text("1")
    (common / "data.txt").write_text("2")
    (common / "shared.h").write_text("2")
    assert noticed(changes) == {"shared.h"}


def test_a_header_that_changed_while_it_was_first_read_is_detected(root: Path, tmp_path: Path) -> None:
    started = time.time_ns() - 10**9
    (tmp_path / "shared.h").write_text("1")
    assert Changes(root).include([tmp_path / "shared.h"], started) == [tmp_path / "shared.h"]


def test_only_changed_contents_of_sources_are_detected(root: Path) -> None:
    changes = Changes(root)
    kernel = root / "cpu/kernel.cpp"
    kernel.touch()
    kernel.write_text("kernel")
    for name in (
        "__pycache__/op.cpython-311.py",
        ".git/index.h",
        "build/made.cpp",
        "venv/lib/a.py",
        "mine.so",
        "op.py~",
    ):
        (root / name).parent.mkdir(exist_ok=True)
        (root / "venv").mkdir(exist_ok=True)
        (root / "venv/pyvenv.cfg").touch()
        (root / name).write_text("new")
    assert changes.look() == []
    kernel.write_text("kernel;")
    assert changes.look() == [kernel]
    assert changes.look() == []


def test_folders_are_polled_if_no_more_can_be_watched(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import watchfiles

    def watch(*_: object, **__: object) -> Iterator[object]:
        message = "OS file watch limit reached."
        raise OSError(message)
        yield

    monkeypatch.setattr(watchfiles, "watch", watch)
    changes = Changes(root)
    changes.wait()
    (root / "op.py").write_text("edited")
    assert noticed(changes) == {"op.py"}
