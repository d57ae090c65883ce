from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from opwright.bundle.format import write as write_module
from opwright.bundle.format.limits import FORMAT
from opwright.bundle.format.read import read_manifest
from opwright.bundle.format.write import writing
from opwright.errors import BundleError
from opwright.storage import rename

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


def test_a_bundle_contains_only_its_files_and_their_digests(target: Path, manifest: Manifest) -> None:
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


def test_nothing_remains_if_writing_fails(target: Path, manifest: Manifest) -> None:
    with pytest.raises(TypeError):
        write(target, manifest, None)  # type: ignore[arg-type]  # the first file cannot be written
    assert list(target.parent.iterdir()) == []


def test_an_existing_bundle_is_replaced_only_with_force(target: Path, manifest: Manifest) -> None:
    write(target, manifest, "old")
    with pytest.raises(BundleError, match="already exists: pass another place with -o, or replace it with --force"):
        write(target, manifest, "new")
    assert (target / "model.pt").read_text() == "old"
    write(target, manifest, "new", force=True)
    assert (target / "model.pt").read_text() == "new"
    assert [path.name for path in target.parent.iterdir()] == ["bundle"]


def test_a_folder_that_appears_in_the_meantime_is_not_replaced_without_force(target: Path, manifest: Manifest) -> None:
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
        ({"tolerance": False}, "a host would reject it: manifest.json: 'tolerance' must be a number, got False"),
        (
            {"goldens": ("goldens/1.pt",)},
            "a host would reject it: manifest.json: the file 'goldens/1.pt' is referenced",
        ),
        ({"opwright": "x" * 256}, "a host would reject it: manifest.json: 'opwright' must be 1 to 255 bytes of text"),
        ({"goldens": ("goldens/0.pt",) * 4097}, "a host would reject it: manifest.json: 'goldens' must be a list of"),
    ],
)
def test_a_bundle_that_a_host_would_reject_is_not_put_in_place(
    target: Path, manifest: Manifest, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(BundleError) as refused:
        write(target, replace(manifest, **change))
    assert message in str(refused.value)
    assert list(target.parent.iterdir()) == []


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_anything_but_a_bundle_is_never_replaced(target: Path, manifest: Manifest, kind: str) -> None:
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


@pytest.mark.parametrize(
    "files",
    [
        {"manifest.json": '{"manifest_version": 3, "name": "a browser\'s extension"}'},
        {"manifest.json": "{}"},
        {"manifest.json": "[" * 100_000},
        {"manifest.json": '{"format": 3, "files": []}', "manifest.sha256": ""},
        {"manifest.json": '{"format": 2, "files": {}}'},
        {"manifest.json": '{"format": 2, "files": {}}', "manifest.sha256": "0" * 64 + "  manifest.json\n"},
        {"manifest.json": '{"format": 2, "files": null}', "manifest.sha256": None},
    ],
    ids=["extension", "object", "nested", "of-no-form", "no-digest", "other-digest", "no-files"],
)
def test_a_folder_with_a_different_kind_of_manifest_is_never_replaced(
    target: Path, manifest: Manifest, files: dict[str, str | None]
) -> None:
    target.mkdir(parents=True)
    text = files["manifest.json"]
    assert text is not None
    for name, content in files.items():
        (target / name).write_text(content if content is not None else _digest_of(text))
    with pytest.raises(BundleError, match="exists and is not a bundle; --force will not replace it"):
        write(target, manifest, force=True)
    assert (target / "manifest.json").read_text() == text
    assert hidden(target.parent) == []


def _digest_of(text: str) -> str:
    return f"{hashlib.sha256(text.encode()).hexdigest()}  manifest.json\n"


def test_a_bundle_of_an_older_format_is_replaced(target: Path, manifest: Manifest) -> None:
    target.mkdir(parents=True)
    text = '{"format": 2, "files": {"model.pt": 1}}'
    for name, content in {"manifest.json": text, "manifest.sha256": _digest_of(text), "model.pt": "old"}.items():
        (target / name).write_text(content)
    write(target, manifest, "new", force=True)
    assert (target / "model.pt").read_text() == "new"


@pytest.mark.parametrize("name", ["notes.txt", "lib/notes.txt", "model.pt"])
def test_a_users_file_inside_a_bundle_is_never_removed(target: Path, manifest: Manifest, name: str) -> None:
    write(target, manifest, "old")
    (target / name).unlink(missing_ok=True)
    (target / name).symlink_to("/etc/hostname") if name == "model.pt" else (target / name).write_text("mine")
    with pytest.raises(BundleError, match=rf"bundle holds {name}, which does not belong to the bundle there; --force"):
        write(target, manifest, "new", force=True)
    assert (target / name).exists()
    assert (target / "lib/mine.so").read_text() == "old"


@pytest.mark.parametrize("damage", ["changed", "missing"])
def test_a_damaged_bundle_is_replaced(target: Path, manifest: Manifest, damage: str) -> None:
    write(target, manifest, "old")
    if damage == "missing":
        (target / "model.pt").unlink()
    else:
        (target / "model.pt").write_text("older")
    write(target, manifest, "new", force=True)
    assert (target / "model.pt").read_text() == "new"


def test_a_folder_that_appears_in_the_meantime_is_not_replaced_with_force(target: Path, manifest: Manifest) -> None:
    with writing(target, force=True) as folder:
        fill(folder, "new")
        target.mkdir()
        (target / "thesis.txt").write_text("years of work")
        with pytest.raises(BundleError, match="exists and is not a bundle; --force will not replace it"):
            folder.finish(manifest)
    assert (target / "thesis.txt").read_text() == "years of work"
    assert hidden(target.parent) == []


def test_a_folder_that_appears_at_the_last_moment_is_put_back(
    target: Path, manifest: Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(target, manifest, "old")
    swap = rename.exchange
    thesis = target.parent / "theses"
    thesis.mkdir()
    (thesis / "thesis.txt").write_text("years of work")

    def meddled(one: Path, other: Path) -> None:
        if thesis.exists():
            target.rename(target.parent / "elsewhere")
            thesis.rename(target)
        swap(one, other)

    monkeypatch.setattr(write_module, "exchange", meddled)
    with pytest.raises(BundleError, match="exists and is not a bundle; --force will not replace it"):
        write(target, manifest, "new", force=True)
    assert (target / "thesis.txt").read_text() == "years of work"
    assert hidden(target.parent) == []


def test_a_full_disk_is_reported_in_one_line_and_nothing_remains(target: Path) -> None:
    error = RuntimeError("the writer failed")
    error.__cause__ = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "model.pt")
    words = r"^the bundle .* cannot be written: No space left on device \(model\.pt\)$"
    with pytest.raises(BundleError, match=words), writing(target):
        raise error
    assert list(target.parent.iterdir()) == []


def test_an_error_of_the_model_is_not_converted(target: Path) -> None:
    with pytest.raises(FileNotFoundError, match="weights"), writing(target):
        raise FileNotFoundError(errno.ENOENT, "weights", "/elsewhere/weights.pt")


def test_a_link_and_a_name_that_cannot_be_in_a_bundle_are_rejected(target: Path, manifest: Manifest) -> None:
    with writing(target) as folder:
        (folder.path / "model.pt").symlink_to("/etc/hostname")
        with pytest.raises(BundleError, match="is not a regular file: a bundle cannot contain links"):
            folder.finish(manifest)
        (folder.path / "model.pt").unlink()
        (folder.path / "my model.pt").write_text("abc")
        with pytest.raises(BundleError, match=r"the path 'my model\.pt' cannot be in a bundle"):
            folder.finish(manifest)
    assert list(target.parent.iterdir()) == []


def test_a_target_below_a_file_is_reported(tmp_path: Path, manifest: Manifest) -> None:
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


def test_the_remains_of_a_killed_writer_are_removed_and_those_of_a_running_one_are_kept(
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
