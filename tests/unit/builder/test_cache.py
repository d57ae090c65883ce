from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opwright.builder.cache import Cache, digest
from opwright.errors import CacheError

if TYPE_CHECKING:
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


def test_an_object_is_found_while_its_headers_are_what_they_were(cache: Cache, tmp_path: Path) -> None:
    header = _file(tmp_path, "a.h", "int a;")
    kept = cache.keep_object("recipe", _file(tmp_path, "a.o", "code"), [header])
    assert kept.read_text() == "code"
    assert cache.find_object("recipe") == kept
    assert cache.find_object("another") is None

    header.write_text("int b;")
    assert cache.find_object("recipe") is None


def test_a_header_with_a_new_time_and_the_same_bytes_is_the_same(cache: Cache, tmp_path: Path) -> None:
    header = _file(tmp_path, "a.h", "int a;")
    kept = cache.keep_object("recipe", _file(tmp_path, "a.o", "code"), [header])
    os.utime(header, ns=(1, 1))
    assert cache.find_object("recipe") == kept


def test_a_header_of_the_same_size_with_other_bytes_is_another(cache: Cache, tmp_path: Path) -> None:
    header = _file(tmp_path, "a.h", "int a;")
    cache.keep_object("recipe", _file(tmp_path, "a.o", "code"), [header])
    before = header.stat()
    header.write_text("int b;")
    os.utime(header, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert cache.find_object("recipe") is None


def test_a_header_that_nobody_touched_is_not_read_again(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = _file(tmp_path, "a.h", "int a;")
    kept = cache.keep_object("recipe", _file(tmp_path, "a.o", "code"), [header])

    def refuse(path: Path) -> bytes:
        msg = f"{path} was read"
        raise AssertionError(msg)

    monkeypatch.setattr("pathlib.Path.read_bytes", refuse)
    assert cache.find_object("recipe") == kept


def test_a_header_that_is_gone_is_a_miss(cache: Cache, tmp_path: Path) -> None:
    header = _file(tmp_path, "a.h", "int a;")
    cache.keep_object("recipe", _file(tmp_path, "a.o", "code"), [header])
    header.unlink()
    assert cache.find_object("recipe") is None


def test_headers_that_go_back_find_the_first_object_again(cache: Cache, tmp_path: Path) -> None:
    header = _file(tmp_path, "a.h", "int a;")
    first = cache.keep_object("recipe", _file(tmp_path, "a.o", "first"), [header])
    header.write_text("int b;")
    cache.keep_object("recipe", _file(tmp_path, "a.o", "second"), [header])
    header.write_text("int a;")
    assert cache.find_object("recipe") == first


def test_a_manifest_of_another_form_is_as_good_as_none(cache: Cache, tmp_path: Path) -> None:
    kept = cache.keep_object("recipe", _file(tmp_path, "a.o", "code"), [_file(tmp_path, "a.h", "int a;")])
    manifest = kept.parent / "manifest.json"
    variants = json.loads(manifest.read_text())
    variants[0]["headers"] = [[1, 2]]
    manifest.write_text(json.dumps(variants))
    assert cache.find_object("recipe") is None


@pytest.mark.parametrize("damage", ["", "{", "[{}]", "null", "[1]"])
def test_a_damaged_manifest_is_as_good_as_none(cache: Cache, tmp_path: Path, damage: str) -> None:
    kept = cache.keep_object("recipe", _file(tmp_path, "a.o", "code"), [])
    (kept.parent / "manifest.json").write_text(damage)
    assert cache.find_object("recipe") is None


def test_a_truncated_object_or_library_is_not_given_out(cache: Cache, tmp_path: Path) -> None:
    kept = cache.keep_object("recipe", _file(tmp_path, "a.o", "code"), [])
    kept.write_text("co")
    assert cache.find_object("recipe") is None

    library = cache.keep_library("recipe", "mine", _file(tmp_path, "mine", "library"))
    assert cache.find_library("recipe", "mine") == library
    library.write_text("lib")
    assert cache.find_library("recipe", "mine") is None


def test_a_library_whose_record_is_damaged_is_not_given_out(cache: Cache, tmp_path: Path) -> None:
    library = cache.keep_library("recipe", "mine", _file(tmp_path, "mine", "library"))
    library.with_suffix(".json").write_text(json.dumps({}))
    assert cache.find_library("recipe", "mine") is None


def test_the_same_text_is_kept_once(cache: Cache) -> None:
    first = cache.keep_source("int a;", "main.cpp")
    written = first.stat().st_mtime_ns
    time.sleep(0.01)
    assert cache.keep_source("int a;", "main.cpp") == first
    assert first.stat().st_mtime_ns == written
    assert cache.keep_source("int b;", "main.cpp") != first


def test_what_a_dead_builder_left_is_cleared_by_the_next(cache: Cache) -> None:
    left = cache.root / "work" / "recipe.dead"
    left.mkdir(parents=True)
    with cache.building("recipe", _ignore) as work:
        assert not left.exists()
        assert list(work.iterdir()) == []
    assert not work.exists()


def test_a_failed_build_leaves_nothing_and_frees_the_lock(cache: Cache) -> None:
    with pytest.raises(ZeroDivisionError), cache.building("recipe", _ignore):
        raise ZeroDivisionError
    with cache.building("recipe", _ignore):
        pass
    assert list((cache.root / "work").iterdir()) == []


def test_a_cache_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CacheError, match=r"the cache at .*file/2 cannot be written: .*set OPWRIGHT_CACHE to a folder"):
        Cache(tmp_path / "file").keep_source("int a;", "main.cpp")


def test_the_variable_chooses_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPWRIGHT_CACHE", str(tmp_path))
    assert Cache().root.parent == tmp_path
