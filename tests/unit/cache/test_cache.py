from __future__ import annotations

import errno
import json
import os
import shutil
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opwright.cache.cache import Cache, digest
from opwright.cache.file_state import state_of
from opwright.errors import CacheError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def _file(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def _ignore(_: str) -> None:
    pass


@given(st.lists(st.text()), st.lists(st.text()))
def test_digests_are_equal_for_equal_parts_only(first: list[str], second: list[str]) -> None:
    assert (digest(first) == digest(second)) == (first == second)


def _made(cache: Cache, text: str) -> Path:
    cache.root.mkdir(parents=True, exist_ok=True)
    return _file(cache.root, "made", text)


def _keep(cache: Cache, text: str, *read: Path, absent: Iterable[Path] = ()) -> Path:
    states = {str(path): state_of(path) for path in read}
    return cache.keep_object("recipe", _made(cache, text), states, map(str, absent))


def test_an_object_is_found_while_its_headers_are_unchanged(cache: Cache, tmp_path: Path) -> None:
    header = _file(tmp_path, "a.h", "int a;")
    kept = _keep(cache, "code", header)
    assert kept.read_text() == "code"
    assert cache.find("recipe") == kept
    assert cache.find("another") is None

    header.write_text("int b;")
    assert cache.find("recipe") is None


def test_a_header_with_a_new_time_and_the_same_bytes_is_unchanged(cache: Cache, tmp_path: Path) -> None:
    header = _file(tmp_path, "a.h", "int a;")
    kept = _keep(cache, "code", header)
    os.utime(header, ns=(1, 1))
    assert cache.find("recipe") == kept


def test_a_header_of_the_same_size_with_other_bytes_has_changed(cache: Cache, tmp_path: Path) -> None:
    header = _file(tmp_path, "a.h", "int a;")
    _keep(cache, "code", header)
    before = header.stat()
    header.write_text("int b;")
    os.utime(header, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert cache.find("recipe") is None


def test_an_untouched_header_is_not_read_again(cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = _keep(cache, "code", _file(tmp_path, "a.h", "int a;"))

    def refuse(path: object) -> None:
        msg = f"{path} was read"
        raise AssertionError(msg)

    monkeypatch.setattr("opwright.cache.file_state.state_of", refuse)
    assert cache.find("recipe") == kept


def test_a_large_file_that_was_touched_counts_as_changed(cache: Cache, tmp_path: Path) -> None:
    large = tmp_path / "liblarge.so"
    with large.open("wb") as file:
        file.truncate(2**24 + 1)
    kept = _keep(cache, "code", large)
    assert cache.find("recipe") == kept
    os.utime(large, ns=(1, 1))
    assert cache.find("recipe") is None


def test_a_removed_header_is_a_miss(cache: Cache, tmp_path: Path) -> None:
    header = _file(tmp_path, "a.h", "int a;")
    _keep(cache, "code", header)
    header.unlink()
    assert cache.find("recipe") is None


def test_a_new_file_that_would_be_read_instead_is_a_miss(cache: Cache, tmp_path: Path) -> None:
    kept = _keep(cache, "code", absent=[tmp_path / "a.h"])
    assert cache.find("recipe") == kept
    _file(tmp_path, "a.h", "int b;")
    assert cache.find("recipe") is None


def test_reverted_headers_find_the_first_object_again(cache: Cache, tmp_path: Path) -> None:
    header = _file(tmp_path, "a.h", "int a;")
    first = _keep(cache, "first", header)
    header.write_text("int b;")
    _keep(cache, "second", header)
    header.write_text("int a;")
    assert cache.find("recipe") == first


@pytest.mark.parametrize(
    "damage",
    [
        {"read": [[1, 2]]},
        {"read": {"/a.h": [1, 2]}},
        {"read": None},
        {"absent": 1},
        {"absent": [1.5]},
        {"product": 1},
        {"product": None},
        {"state": None},
        {"state": [1, 2, 3, 4, 5, 6]},
    ],
    ids=str,
)
def test_a_malformed_record_is_ignored(cache: Cache, damage: dict[str, object]) -> None:
    _keep(cache, "code")
    record = cache.root / "recipes" / "recipe.json"
    (variant,) = json.loads(record.read_text())
    record.write_text(json.dumps([{**variant, **damage}]))
    assert cache.find("recipe") is None


@pytest.mark.parametrize("damage", ["", "{", "[{}]", "null", "[1]", "{}", "\0" * 64, "\ud800"])
def test_a_damaged_record_is_ignored_and_replaced(cache: Cache, damage: str) -> None:
    _keep(cache, "code")
    (cache.root / "recipes" / "recipe.json").write_text(damage, errors="surrogatepass")
    assert cache.find("recipe") is None
    kept = _keep(cache, "code")
    assert cache.find("recipe") == kept


@pytest.mark.parametrize("damage", ["", "co", "\0\0\0\0", "c0de", "code and more"])
@pytest.mark.parametrize("dated_back", [False, True])
def test_a_damaged_object_or_library_is_ignored_and_replaced(cache: Cache, damage: str, dated_back: bool) -> None:
    def keep() -> list[Path]:
        library = cache.keep_library("library", _made(cache, "code"), "mine", {})
        return [_keep(cache, "code"), library]

    for recipe, kept in zip(("recipe", "library"), keep(), strict=True):
        before = kept.stat()
        kept.write_text(damage)
        if dated_back:
            os.utime(kept, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert cache.find(recipe) is None
    for recipe, kept in zip(("recipe", "library"), keep(), strict=True):
        assert cache.find(recipe) == kept
        assert kept.read_text() == "code"


def test_a_copied_cache_works_like_the_original(cache: Cache, tmp_path: Path) -> None:
    kept = _keep(cache, "code")
    shutil.copytree(cache.root.parent, tmp_path / "copy")
    found = Cache(tmp_path / "copy").find("recipe")
    assert found is not None
    assert found != kept
    assert found.read_text() == "code"


def test_a_library_is_found_only_if_its_inputs_are_known(cache: Cache) -> None:
    kept = cache.keep_library("recipe", _made(cache, "code"), "mine", None)
    assert kept.read_text() == "code"
    assert cache.find("recipe") is None


def _folder(cache: Cache) -> Path:
    with cache.building("recipe", _ignore) as work:
        (work / "prefix" / "bin").mkdir(parents=True)
        _file(work / "prefix" / "bin", "program", "code")
        return cache.keep_folder("recipe", work / "prefix")


@pytest.mark.parametrize("damage", [None, "", "\0\0\0\0"], ids=["gone", "empty", "zeros"])
def test_a_damaged_folder_is_ignored_and_replaced(cache: Cache, damage: str | None) -> None:
    folder = _folder(cache)
    assert cache.find_folder("recipe") == folder
    if damage is None:
        (folder / "bin" / "program").unlink()
    else:
        (folder / "bin" / "program").write_text(damage)
    assert cache.find_folder("recipe") is None
    assert _folder(cache) == folder
    assert cache.find_folder("recipe") == folder
    assert list((cache.root / "work").iterdir()) == []


def test_a_damaged_source_is_replaced(cache: Cache) -> None:
    path = cache.keep_source("int a;", "main.cpp")
    path.write_bytes(b"\0\0\0\0\0\0")
    assert cache.keep_source("int a;", "main.cpp") == path
    assert path.read_text() == "int a;"


def test_the_same_text_is_kept_once(cache: Cache) -> None:
    first = cache.keep_source("int a;", "main.cpp")
    written = first.stat().st_mtime_ns
    time.sleep(0.01)
    assert cache.keep_source("int a;", "main.cpp") == first
    assert first.stat().st_mtime_ns == written
    assert cache.keep_source("int b;", "main.cpp") != first


def test_the_folder_of_a_killed_build_is_removed_by_the_next(cache: Cache) -> None:
    left = cache.root / "work" / "recipe.dead"
    left.mkdir(parents=True)
    with cache.building("recipe", _ignore) as work:
        assert not left.exists()
        assert list(work.iterdir()) == []
    assert not work.exists()


def test_folders_of_killed_builds_of_other_libraries_are_removed_but_not_those_of_running_ones(cache: Cache) -> None:
    left = cache.root / "work" / "other.dead"
    left.mkdir(parents=True)
    with cache.building("living", _ignore) as living, cache.building("recipe", _ignore):
        assert not left.exists()
        assert living.is_dir()


def test_without_locks_between_machines_folders_of_killed_builds_stay_for_a_day(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opwright.storage.file_system.Mount.locks_reach_other_machines", False)
    (cache.root / "work").mkdir(parents=True)
    names = {"recipe.new", "recipe.old", "other.new", "other.old"}
    for name in names:
        (cache.root / "work" / name).mkdir()
        then = time.time() - (25 if "old" in name else 23) * 3600
        os.utime(cache.root / "work" / name, (then, then))
    with cache.building("recipe", _ignore) as work:
        assert {path.name for path in work.parent.iterdir()} - {work.name} == {"recipe.new", "other.new"}


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP])
def test_a_file_system_without_locks_is_rejected_with_the_reason(
    cache: Cache, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def fail(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("fcntl.flock", fail)
    with pytest.raises(
        CacheError,
        match=rf"^the cache at {cache.root} cannot be used: its file system \(\w+, at /.*\) does not support locks \("
        rf"{os.strerror(code)}\), which concurrent builds require\. Set OPWRIGHT_CACHE to a folder on a local disk",
    ):
        cache.keep_source("int a;", "a.cpp")


def test_a_failed_build_leaves_nothing_and_releases_the_lock(cache: Cache) -> None:
    with pytest.raises(ZeroDivisionError), cache.building("recipe", _ignore):
        raise ZeroDivisionError
    with cache.building("recipe", _ignore):
        pass
    assert list((cache.root / "work").iterdir()) == []


def test_a_cache_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CacheError, match=r"the cache at .*file/\d+ cannot be written: .*set OPWRIGHT_CACHE to"):
        Cache(tmp_path / "file").keep_source("int a;", "main.cpp")


def test_a_full_disk_during_a_build_is_a_cache_error(cache: Cache) -> None:
    with (
        pytest.raises(CacheError, match="cannot be written: No space left on device"),
        cache.building("recipe", _ignore),
    ):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_the_variable_sets_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPWRIGHT_CACHE", str(tmp_path))
    assert Cache().root.parent == tmp_path
