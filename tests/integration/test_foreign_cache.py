"""A cache that belongs to another user, and that this user can at most read."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.needs("another_user")

_BUILD = """
import sys
from opwright.builder.compile import build_plan
from opwright.builder.plan import plan_sources
from opwright.errors import OpwrightError
try:
    artefact = build_plan(plan_sources("mine", sys.argv[1:]))
    print(len(artefact.compiled), artefact.path.name)
except OpwrightError as error:
    print(type(error).__name__, error)
"""
_SOMEBODY = 65534
# Root without its permission to read and write every file.
_AS_A_USER = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search,-fowner,-chown"]
_UNWRITABLE = (
    "CacheError the cache at {}/4 cannot be written: Permission denied. Free some space, fix its permissions, or set "
    "OPWRIGHT_CACHE to a writable folder\n"
)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with a source, and with a cache that has its build and belongs to another user."""
    (tmp_path / "a.cpp").write_text("int a() { return 1; }\n")
    assert _build(tmp_path) == "1 mine.so\n"
    cache = tmp_path / "cache"
    for path in [cache, *cache.rglob("*")]:
        path.chmod(path.stat().st_mode & 0o555)
        if os.geteuid() == 0:
            os.chown(path, _SOMEBODY, _SOMEBODY)
    yield tmp_path
    for path in [cache, *cache.rglob("*")]:
        path.chmod(0o755)  # so that it can be removed


def _build(folder: Path, *, user: bool = False, name: str = "a.cpp") -> str:
    command: list[str | Path] = [sys.executable, "-c", _BUILD, folder / name]
    environment = {**os.environ, "OPWRIGHT_CACHE": str(folder / "cache")}
    done = subprocess.run(
        [*(_AS_A_USER if user and os.geteuid() == 0 else []), *command],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_its_builds_are_used(folder: Path) -> None:
    assert _build(folder, user=True) == "0 mine.so\n"


def test_a_new_build_fails_and_the_error_explains_what_to_do(folder: Path) -> None:
    (folder / "b.cpp").write_text("int b() { return 1; }\n")
    assert _build(folder, user=True, name="b.cpp") == _UNWRITABLE.format(folder / "cache")


def test_an_unreadable_cache_is_the_same_error(folder: Path) -> None:
    (folder / "cache").chmod(0)
    assert _build(folder, user=True) == _UNWRITABLE.format(folder / "cache")


@pytest.mark.parametrize("lost", ["locks", "work"])
def test_an_incomplete_cache_is_the_same_error(folder: Path, lost: str) -> None:
    (folder / "b.cpp").write_text("int b() { return 1; }\n")
    gone = folder / "cache/4" / lost
    for path in (gone.parent, gone, *gone.rglob("*")):
        path.chmod(0o755)
    shutil.rmtree(gone)
    gone.parent.chmod(0o555)
    assert _build(folder, user=True, name="b.cpp") == _UNWRITABLE.format(folder / "cache")
