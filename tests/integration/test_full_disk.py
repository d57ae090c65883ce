"""A disk that becomes full at any time is reported in one line, and nothing changes."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import time
from typing import TYPE_CHECKING

import pytest
import torch

import opwright
from opwright.builder.compile import build_plan, copy_to
from opwright.builder.plan import plan_sources
from opwright.cache.bound import Bound
from opwright.cache.cache import Cache
from opwright.errors import BuildError, BundleError, CacheError
from tests.interpreter import python

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.needs("mount")

_FULL = "No space left on device"
_DISK_BYTES = 8 * 2**20


class Disk:
    """A small, separate file system, which can be filled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def leave(self, free: int) -> None:
        """Fill it until this number of bytes is free."""
        filler = self.path / "filler"
        filler.unlink(missing_ok=True)
        with filler.open("wb") as file:
            file.truncate(0)
            os.posix_fallocate(file.fileno(), 0, max(1, shutil.disk_usage(self.path).free - free))

    def state(self) -> dict[str, str]:
        """Every file with the digest of its contents, and every folder."""
        return {
            str(path.relative_to(self.path)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
            for path in sorted(self.path.rglob("*"))
            if path.name != "filler"
        }


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_DISK_BYTES}", "tmpfs", folder], check=True)
    yield Disk(folder)
    monkeypatch.undo()
    subprocess.run(["umount", folder], check=True)


class Net(torch.nn.Module):
    """Weights of 256 KiB, and larger goldens."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(256, 256))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """A matrix product."""
        return x @ self.weight


def _ship(target: Path, *, force: bool = False) -> None:
    opwright.ship(Net(), output=target, samples=[torch.randn(300, 256)], force=force)


@pytest.mark.parametrize("free", [0, 5_000, 20_000, 100_000, 250_000, 290_000, 400_000, 700_000, 1_000_000])
@pytest.mark.parametrize("force", [False, True])
def test_ship_leaves_the_target_unchanged(disk: Disk, free: int, force: bool) -> None:
    target = disk.path / "bundle"
    if force:
        _ship(target)
    before = disk.state()
    disk.leave(free)
    with pytest.raises(BundleError, match=rf"^the bundle {target} cannot be written: {_FULL}.*$") as caught:
        _ship(target, force=force)
    assert "\n" not in str(caught.value)
    assert disk.state() == before
    disk.leave(4_000_000)
    _ship(target, force=force)
    assert [path.name for path in disk.path.iterdir() if path.name != "filler"] == ["bundle"]


def test_the_command_reports_it_in_one_line_with_the_exit_code_of_bundles(disk: Disk, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "import torch\ndef net(): return torch.nn.Linear(256, 256)\ndef samples(): yield torch.randn(300, 256)\n"
    )
    disk.leave(300_000)
    command = [*python(), "-m", "opwright", "ship", f"{tmp_path}/model.py:net", "-o", f"{disk.path}/bundle"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 8
    assert done.stdout == ""
    assert done.stderr == f"error: the bundle {disk.path}/bundle cannot be written: {_FULL}\n"
    assert disk.state() == {}


@pytest.mark.parametrize("free", [0, 4_096, 12_288, 20_480, 30_000, 40_000, 60_000])
def test_a_build_keeps_only_complete_files(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int
) -> None:
    cache = Cache(disk.path / "cache")
    (tmp_path / "a.cpp").write_text(
        f"int numbers[] = {{{','.join(map(str, range(9000)))}}};\nint a() {{ return 1; }}\n"
    )
    plan = plan_sources("mine", [tmp_path / "a.cpp"], cflags=["-O0"])
    disk.leave(free)
    with pytest.raises(CacheError, match=rf"^the cache at {cache.root} cannot be written: {_FULL}.*$") as caught:
        build_plan(plan, cache=cache)
    assert "\n" not in str(caught.value)
    kept = {path.parent.name for path in cache.root.rglob("*") if path.is_file()} - {cache.root.name}
    assert kept <= {"objects", "recipes", "entries", "locks"}
    assert not list(cache.root.glob("work/*"))
    disk.leave(2_000_000)
    artefact = build_plan(plan, cache=cache)
    assert artefact.path.read_bytes()[:16] != b"\0" * 16
    assert build_plan(plan, cache=cache).path == artefact.path


def test_a_cache_on_a_read_only_disk_returns_existing_builds(disk: Disk, tmp_path: Path) -> None:
    cache = Cache(disk.path / "cache")
    for name in ("a", "b"):
        (tmp_path / f"{name}.cpp").write_text(f"int {name}() {{ return 1; }}\n")
    plans = [plan_sources("mine", [tmp_path / f"{name}.cpp"], cflags=["-O0"]) for name in ("a", "b")]
    made = build_plan(plans[0], cache=cache)
    then = time.time() - 10 * 86_400
    for entry in (cache.root / "entries").iterdir():
        os.utime(entry, (then, then))
    subprocess.run(["mount", "-o", "remount,ro", disk.path], check=True)
    found = build_plan(plans[0], cache=cache)
    assert (found.path, found.compiled) == (made.path, ())
    with pytest.raises(
        CacheError, match=rf"^the cache at {cache.root} cannot be written: Read-only file system\. Free some"
    ):
        build_plan(plans[1], cache=cache)
    with pytest.raises(CacheError, match="cannot be written: Read-only file system"):
        cache.prune(Bound())


@pytest.mark.parametrize("was_there", [False, True])
def test_a_copy_of_a_build_is_complete_or_unchanged(disk: Disk, tmp_path: Path, was_there: bool) -> None:
    # Larger than the free space below, with any linker.
    (tmp_path / "a.cpp").write_text(f"int a[] = {{{','.join(map(str, range(9000)))}}};\n")
    artefact = build_plan(plan_sources("mine", [tmp_path / "a.cpp"]), cache=Cache(tmp_path / "cache"))
    target = disk.path / "libmine.so"
    if was_there:
        target.write_text("old")
    before = disk.state()
    disk.leave(8_192)
    with pytest.raises(
        BuildError, match=rf"^{target} cannot be written: {_FULL}\. The build itself succeeded: {artefact.path}$"
    ):
        copy_to(artefact, target)
    assert disk.state() == before


def test_a_report_is_complete_or_unchanged(disk: Disk) -> None:
    target = disk.path / "doctor.json"
    target.write_text("{}\n")
    disk.leave(0)
    command = [*python(), "-m", "opwright", "doctor", "--json", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: --json {target} cannot be written: {_FULL}. ")
    assert done.stderr.count("\n") == 1
    assert disk.state() == {"doctor.json": hashlib.sha256(b"{}\n").hexdigest()}
