from __future__ import annotations

import hashlib
import json
import math
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from opwright.bundle.format.limits import FORMAT
from opwright.bundle.format.read import read_manifest
from opwright.bundle.format.write import writing
from opwright.errors import BundleError

if TYPE_CHECKING:
    from pathlib import Path

    from opwright.bundle.format.manifest import Manifest
    from opwright.bundle.format.write import Folder


def fill(folder: Folder, text: str) -> None:
    for name in ("model.pt", "lib/mine.so", "goldens/0.pt"):
        (folder.path / name).parent.mkdir(exist_ok=True)
        (folder.path / name).write_text(text)


def write(target: Path, manifest: Manifest, text: str = "abc", *, force: bool = False) -> Manifest:
    with writing(target, force=force) as folder:
        fill(folder, text)
        return folder.finish(manifest)


def hidden(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "bundle"


def test_a_bundle_holds_its_files_their_digests_and_nothing_else(target: Path, manifest: Manifest) -> None:
    whole = write(target, manifest)
    assert sorted(path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()) == [
        *("goldens/0.pt", "lib/mine.so", "manifest.json", "manifest.sha256", "model.pt")
    ]
    assert whole.files["model.pt"].bytes == 3
    assert whole.files["model.pt"].sha256 == hashlib.sha256(b"abc").hexdigest()
    assert read_manifest((target / "manifest.json").read_bytes()) == whole
    digest, name = (target / "manifest.sha256").read_text().split("  ")
    assert (name, digest) == ("manifest.json\n", hashlib.sha256((target / "manifest.json").read_bytes()).hexdigest())
    assert [path.name for path in target.parent.iterdir()] == ["bundle"]


def test_nothing_stays_where_writing_fails(target: Path, manifest: Manifest) -> None:
    with pytest.raises(TypeError):
        write(target, manifest, None)  # type: ignore[arg-type]  # the first file cannot be written
    assert list(target.parent.iterdir()) == []


def test_what_is_there_is_replaced_only_where_that_is_said(target: Path, manifest: Manifest) -> None:
    write(target, manifest, "old")
    with pytest.raises(BundleError, match="already exists: name another place with -o, or replace it with --force"):
        write(target, manifest, "new")
    assert (target / "model.pt").read_text() == "old"
    write(target, manifest, "new", force=True)
    assert (target / "model.pt").read_text() == "new"
    assert [path.name for path in target.parent.iterdir()] == ["bundle"]


def test_what_came_there_in_the_meantime_is_not_replaced(target: Path, manifest: Manifest) -> None:
    with writing(target) as folder:
        fill(folder, "new")
        target.mkdir()
        with pytest.raises(BundleError, match="already exists"):
            folder.finish(manifest)
    assert list(target.iterdir()) == []
    assert hidden(target.parent) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tolerance": math.nan}, "the manifest cannot be written: "),
        ({"opwright": "\ud800"}, "the manifest cannot be written: "),
        ({"tolerance": False}, "a host would refuse it: manifest.json: 'tolerance' must be a number, got False"),
        ({"goldens": ("goldens/1.pt",)}, "a host would refuse it: manifest.json: the file 'goldens/1.pt' is named"),
        ({"opwright": "x" * 256}, "a host would refuse it: manifest.json: 'opwright' must be 1 to 255 bytes of text"),
        ({"goldens": ("goldens/0.pt",) * 4097}, "a host would refuse it: manifest.json: 'goldens' must be a list of"),
    ],
)
def test_what_a_host_would_refuse_is_not_put_in_place(
    target: Path, manifest: Manifest, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(BundleError) as refused:
        write(target, replace(manifest, **change))
    assert message in str(refused.value)
    assert list(target.parent.iterdir()) == []


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_what_is_no_bundle_is_never_replaced(target: Path, manifest: Manifest, kind: str) -> None:
    thesis = target.parent / "theses" / "thesis.txt"
    thesis.parent.mkdir(parents=True)
    thesis.write_text("years of work")
    if kind == "link":
        target.symlink_to(thesis.parent)
    elif kind == "folder":
        thesis.parent.rename(target)
        thesis = target / "thesis.txt"
    else:
        thesis.rename(target)
        thesis = target
    with pytest.raises(BundleError, match="exists and is not a bundle; --force will not replace it"):
        write(target, manifest, force=True)
    assert thesis.read_text() == "years of work"


def test_a_link_and_a_name_that_cannot_be_in_a_bundle_are_refused(target: Path, manifest: Manifest) -> None:
    with writing(target) as folder:
        (folder.path / "model.pt").symlink_to("/etc/hostname")
        with pytest.raises(BundleError, match="is not a regular file: a bundle holds no links"):
            folder.finish(manifest)
        (folder.path / "model.pt").unlink()
        (folder.path / "my model.pt").write_text("abc")
        with pytest.raises(BundleError, match=r"the path 'my model\.pt' cannot be in a bundle"):
            folder.finish(manifest)
    assert list(target.parent.iterdir()) == []


def test_a_place_below_a_file_is_told(tmp_path: Path, manifest: Manifest) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BundleError, match=r"cannot be written: (Not a directory|File exists)"):
        write(tmp_path / "file" / "bundle", manifest)


SLOW = """
import sys, time
from pathlib import Path
from opwright.bundle.format.write import writing
with writing(Path(sys.argv[1])) as folder:
    (folder.path / "model.pt").write_text("half")
    print("writing", flush=True)
    time.sleep(600)
"""


def test_what_a_killed_writer_left_is_removed_by_the_next_and_a_live_one_is_left_alone(
    target: Path, manifest: Manifest
) -> None:
    with subprocess.Popen([sys.executable, "-c", SLOW, str(target)], stdout=subprocess.PIPE, text=True) as writer:
        try:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "writing\n"
            left = hidden(target.parent)
            assert len(left) == 1
            write(target, manifest)
            assert hidden(target.parent) == left
        finally:
            writer.send_signal(signal.SIGKILL)
    assert hidden(target.parent) == left
    assert json.loads((target / "manifest.json").read_text())["format"] == FORMAT
    write(target, manifest, force=True)
    assert hidden(target.parent) == []
