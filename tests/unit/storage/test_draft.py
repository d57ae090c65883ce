from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from opwright.storage.draft import drafting, put


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_appears_when_it_is_complete_and_nothing_else_remains(tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    with drafting(target, "write") as draft:
        assert draft.name == "out.json"
        draft.write_text("half")
        assert not target.exists()
        draft.write_text("whole")
        put(draft, target)
    assert target.read_text() == "whole"
    assert _names(target.parent) == ["out.json"]


def test_the_old_file_remains_if_the_new_one_fails(tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    target.write_text("old")
    with pytest.raises(TypeError), drafting(target, "write") as draft:
        put(draft.write_text("half"), target)  # type: ignore[arg-type]  # which raises
    assert target.read_text() == "old"
    assert _names(tmp_path) == ["out.json"]


@pytest.mark.parametrize("name", ["x" * 255, "ä" * 127, "a\udcffb"], ids=["long", "long-letters", "no-utf-8"])
def test_any_file_name_has_a_draft(tmp_path: Path, name: str) -> None:
    with drafting(tmp_path / name, "write") as draft:
        draft.write_text("whole")
        put(draft, tmp_path / name)
    assert _names(tmp_path) == [name]


def test_a_users_folder_is_never_removed_as_a_draft(tmp_path: Path) -> None:
    own = [".out.write-of_mine", ".out.write-abcdefgh"]
    for name in own:
        (tmp_path / name).mkdir()
        (tmp_path / name / "thesis.txt").write_text("years of work")
    (tmp_path / ".out.write-12345678").symlink_to(tmp_path / own[0])
    (tmp_path / ".out.write-87654321").write_text("a file")
    before = _names(tmp_path)
    with drafting(tmp_path / "out", "write"):
        pass
    assert _names(tmp_path) == before
    assert all((tmp_path / name / "thesis.txt").exists() for name in own)


_HOLDS = """
import sys, time
from pathlib import Path
from opwright.storage.draft import drafting
with drafting(Path(sys.argv[1]), "write") as draft:
    draft.mkdir()
    (draft / "half").write_text("half")
    print("holds", flush=True)
    time.sleep(600)
"""


def test_the_drafts_of_killed_processes_are_removed_and_those_of_running_ones_kept(tmp_path: Path) -> None:
    target = tmp_path / "out"
    with subprocess.Popen([sys.executable, "-c", _HOLDS, target], stdout=subprocess.PIPE, text=True) as living:
        assert living.stdout is not None
        assert living.stdout.readline() == "holds\n"
        with drafting(target, "write"):
            pass
        assert len(_names(tmp_path)) == 1
        living.send_signal(signal.SIGKILL)
    assert len(_names(tmp_path)) == 1
    # A process killed slightly earlier or later leaves an empty folder.
    (tmp_path / ".out.write-abcdefgh").mkdir()
    with drafting(target, "write"):
        pass
    assert _names(tmp_path) == []


def test_concurrent_processes_never_remove_each_others_drafts(tmp_path: Path) -> None:
    target = tmp_path / "out"

    def write(number: int) -> None:
        for _ in range(100):
            with drafting(target, "write") as draft:
                draft.write_text(f"{number}" * 1000)
                put(draft, target)
                assert len(set(target.read_text())) == 1

    with ThreadPoolExecutor(8) as writers:
        list(writers.map(write, range(8)))
    assert _names(tmp_path) == ["out"]
    assert len(target.read_text()) == 1000


@pytest.mark.parametrize("kind", ["pipe", "link to a pipe", "link to a device"])
def test_anything_but_a_file_is_never_replaced(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "out"
    if kind == "link to a device":
        target.symlink_to("/dev/null")
    else:
        os.mkfifo(tmp_path / "pipe")
        if kind == "pipe":
            target = tmp_path / "pipe"
        else:
            target.symlink_to("pipe")
    before = target.lstat()
    with pytest.raises(OSError, match="it is a device, a pipe or a socket, not a file"):
        _write(target)
    assert target.lstat().st_ino == before.st_ino


def test_another_name_of_an_open_file_is_never_replaced(tmp_path: Path) -> None:
    draft = tmp_path / "draft"
    draft.write_text("whole")
    message = "it is a device, a pipe or a socket, not a file"
    with (tmp_path / "open").open("w") as file, pytest.raises(OSError, match=message):
        put(draft, Path(f"/proc/self/fd/{file.fileno()}"))
    assert (tmp_path / "open").read_text() == ""


def _write(target: Path) -> None:
    draft = target.with_name("draft")
    draft.write_text("whole")
    put(draft, target)


def test_a_target_below_a_file_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError), drafting(tmp_path / "file" / "out", "write"):
        pass


def test_a_bundle_whose_exchange_was_killed_halfway_is_restored(tmp_path: Path) -> None:
    left = tmp_path / ".out.ship-abcdefgh"
    (left / "out.kept").mkdir(parents=True)
    (left / "out.kept" / "model.pt").write_text("old")
    (left / "out").mkdir()
    with drafting(tmp_path / "out", "ship"):
        assert (tmp_path / "out" / "model.pt").read_text() == "old"
    assert _names(tmp_path) == ["out"]
    assert not os.path.lexists(left)
