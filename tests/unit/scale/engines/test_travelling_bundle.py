"""A bundle on a machine that lacks it is unpacked once, completely, and only into a folder of this user."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import sys
import tarfile
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from opwright.errors import MapError
from opwright.scale.engines.travelling_bundle import TravellingBundle

MANIFEST = '{"files": {"lib/ops.so": {"bytes": 4}}}'


@pytest.fixture
def unpacked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The bundles read from the object store, in which packed bundles are their own references."""
    taken: list[Any] = []

    def get(packed: bytes) -> bytes:
        taken.append(packed)
        return packed

    monkeypatch.setitem(sys.modules, "ray", types.SimpleNamespace(get=get))
    return taken


@pytest.fixture
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TravellingBundle:
    """A bundle on another machine; copies go to a folder of the test."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "temporary"))
    folder = tmp_path / "bundle"
    (folder / "lib").mkdir(parents=True)
    (folder / "manifest.json").write_text(MANIFEST)
    (folder / "lib" / "ops.so").write_bytes(b"code")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.add(folder, arcname=".")
    digest = hashlib.sha256(MANIFEST.encode()).hexdigest()
    return TravellingBundle(folder, digest, packed.getvalue())


def test_nothing_is_copied_if_the_bundle_is_there(bundle: TravellingBundle, unpacked: list[Any]) -> None:
    assert bundle.here() == bundle.folder
    assert unpacked == []


def test_a_missing_bundle_is_unpacked_once(bundle: TravellingBundle, unpacked: list[Any]) -> None:
    shutil.rmtree(bundle.folder)
    with ThreadPoolExecutor(4) as workers:
        copies = {*workers.map(lambda _: bundle.here(), range(8))}
    (copy,) = copies
    assert (copy / "lib" / "ops.so").read_bytes() == b"code"
    assert len(unpacked) == 1
    assert sorted(path.name for path in copy.parent.iterdir()) == [bundle.digest, f"{bundle.digest}.lock"]


@pytest.mark.parametrize("lost", ["manifest.json", "lib/ops.so"])
def test_a_copy_that_has_lost_a_file_is_unpacked_again(
    bundle: TravellingBundle, unpacked: list[Any], lost: str
) -> None:
    shutil.rmtree(bundle.folder)
    (bundle.here() / lost).unlink()
    assert (bundle.here() / lost).is_file()
    assert len(unpacked) == 2


def test_another_bundle_at_its_path_is_not_used(bundle: TravellingBundle, unpacked: list[Any]) -> None:
    (bundle.folder / "manifest.json").write_text('{"format": 3}')
    assert bundle.here() != bundle.folder
    assert len(unpacked) == 1


def test_a_folder_of_another_user_is_rejected(bundle: TravellingBundle, unpacked: list[Any], tmp_path: Path) -> None:
    shutil.rmtree(bundle.folder)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "temporary" / f"opwright-bundles-{os.getuid()}").symlink_to(elsewhere)
    with pytest.raises(MapError, match=r"belongs to another user: remove it, or set TMPDIR"):
        bundle.here()
    assert unpacked == []
