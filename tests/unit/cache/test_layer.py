from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest

from opwright.cache.cache import Cache
from opwright.cache.file_state import state_of
from opwright.errors import CacheError

if TYPE_CHECKING:
    from pathlib import Path

# An administrator's umask; that of the tests may differ.
_MODES = (0o755, 0o644)


@pytest.fixture
def safe(tmp_path: Path) -> Path:
    """A folder that only this user can write to, like its parents."""
    (tmp_path / "safe").mkdir(mode=0o755)
    return tmp_path / "safe"


def _fill(root: Path, *, text: str = "shared") -> Cache:
    """A cache with an object, a library, a folder and a source that others can read."""
    cache = Cache(root)
    cache.keep_source("int a;", "a.cpp")
    with cache.building("recipe", lambda _: None) as work:
        for name in ("made.o", "made.so"):
            (work / name).write_text(text)
        cache.keep_object("object", work / "made.o", {})
        cache.keep_library("library", work / "made.so", "mine", {})
        (work / "prefix").mkdir()
        (work / "prefix/file").write_text(text)
        cache.keep_folder("folder", work / "prefix")
    for path in [root, *root.rglob("*")]:
        path.chmod(_MODES[path.is_file()])
    return cache


def _layered(monkeypatch: pytest.MonkeyPatch, own: Path, *shared: Path) -> Cache:
    monkeypatch.setenv("OPWRIGHT_CACHE", str(own))
    monkeypatch.setenv("OPWRIGHT_SHARED_CACHE", ":".join(map(str, shared)))
    return Cache()


def _found(cache: Cache) -> list[Path | None]:
    return [
        cache.find("object"),
        cache.find("library"),
        cache.find_folder("folder"),
        cache.keep_source("int a;", "a.cpp"),
    ]


def _state(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.stat().st_mtime_ns, path.stat().st_ctime_ns) for path in sorted(folder.rglob("*"))}


def test_entries_of_a_shared_cache_are_used_in_place_without_writing_to_it(
    safe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled = _found(_fill(safe / "shared"))
    before = _state(safe / "shared")
    cache = _layered(monkeypatch, safe / "own", safe / "shared")
    assert _found(cache) == filled
    assert all(path is not None and cache.holds(path) for path in filled)
    assert _state(safe / "shared") == before
    assert not (safe / "own").exists()


def test_entries_that_a_shared_cache_lacks_are_kept_in_the_users_own(
    safe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fill(safe / "shared")
    before = _state(safe / "shared")
    cache = _layered(monkeypatch, safe / "own", safe / "shared")
    assert cache.find("another") is None
    with cache.building("another", lambda _: None) as work:
        (work / "made.o").write_text("mine")
        kept = cache.keep_object("another", work / "made.o", {})
    assert (safe / "own") in kept.parents
    assert cache.find("another") == kept
    assert _state(safe / "shared") == before


def test_the_users_own_build_comes_first_and_then_the_layers_in_order(
    safe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("own", "first", "second"):
        _fill(safe / name, text=name)
    cache = _layered(monkeypatch, safe / "own", safe / "first", safe / "second")
    for name in ("own", "first", "second"):
        found = cache.find("object")
        assert found is not None
        assert found.read_text() == name
        (safe / name / "4/recipes/object.json").unlink()
    assert cache.find("object") is None


def test_a_damaged_file_of_a_shared_cache_is_not_used(safe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in _found(_fill(safe / "shared")):
        assert path is not None
        (path / "file" if path.is_dir() else path).write_text("shaded")
    cache = _layered(monkeypatch, safe / "own", safe / "shared")
    assert _found(cache)[:3] == [None] * 3
    assert (safe / "own") in cache.keep_source("int a;", "a.cpp").parents


def test_a_build_is_shared_only_if_the_headers_are_the_same(safe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    header = safe / "a.h"
    header.write_text("int a;")
    filled = _fill(safe / "shared")
    with filled.building("recipe", lambda _: None) as work:
        (work / "made.o").write_text("code")
        kept = filled.keep_object("recipe", work / "made.o", {str(header): state_of(header)})
    cache = _layered(monkeypatch, safe / "own", safe / "shared")
    assert cache.find("recipe") == kept
    header.write_text("int b;")
    assert cache.find("recipe") is None


@pytest.mark.parametrize("part", ["", "4", "4/recipes", "4/libraries", "4/inline"])
def test_a_world_writable_shared_cache_is_rejected(safe: Path, monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    _fill(safe / "shared")
    (safe / "shared" / part).chmod(0o1777)
    shared, folder = (re.escape(str(safe / name)) for name in ("shared", f"shared/{part}".rstrip("/")))
    with pytest.raises(
        CacheError,
        match=f"^the shared cache {shared} is not used because of {folder}: it is world-writable. Code in a cache "
        r"runs as you: correct .*\(chmod o-w\), or remove it from OPWRIGHT_SHARED_CACHE$",
    ):
        _layered(monkeypatch, safe / "own", safe / "shared")


def test_a_shared_cache_in_a_world_writable_folder_is_rejected(safe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fill(safe / "shared")
    safe.chmod(0o777)
    with pytest.raises(CacheError, match=f"because of {re.escape(str(safe))}: it is world-writable"):
        _layered(monkeypatch, safe / "own", safe / "shared")
    safe.chmod(0o1777)
    _layered(monkeypatch, safe / "own", safe / "shared")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_part_of_a_shared_cache_with_another_owner_is_rejected(safe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fill(safe / "shared")
    os.chown(safe / "shared/4/recipes", 65534, 65534)
    with pytest.raises(CacheError, match=r"/4/recipes: it belongs to user 65534, and .*shared does not"):
        _layered(monkeypatch, safe / "own", safe / "shared")
    for path in [safe / "shared", *(safe / "shared").rglob("*")]:
        os.chown(path, 65534, 65534)
    assert None not in _found(_layered(monkeypatch, safe / "own", safe / "shared"))


def test_a_world_writable_file_of_a_shared_cache_is_not_used(safe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled = _fill(safe / "shared")
    cache = _layered(monkeypatch, safe / "own", safe / "shared")
    assert cache.find("object") == filled.find("object")
    for record in (safe / "shared/4/recipes").iterdir():
        record.chmod(0o666)
    assert cache.find("object") is None
    assert cache.find("library") is None


def test_a_missing_shared_cache_is_ignored_and_a_relative_one_is_an_error(
    safe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _layered(monkeypatch, safe / "own", safe / "shared").find("object") is None
    monkeypatch.setenv("OPWRIGHT_SHARED_CACHE", "shared")
    with pytest.raises(
        CacheError, match=r"^OPWRIGHT_SHARED_CACHE contains the relative path shared: expected absolute"
    ):
        Cache()


def test_a_cache_with_an_explicit_folder_has_no_layers(safe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fill(safe / "shared")
    monkeypatch.setenv("OPWRIGHT_SHARED_CACHE", str(safe / "shared"))
    assert Cache(safe / "own").find("object") is None
