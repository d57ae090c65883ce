"""Whatever a cache contains, a build is repeated or raises CacheError, and nothing outside the cache is used."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING

import pytest

from opwright.cache.cache import Cache
from opwright.cache.file_state import state_of
from opwright.errors import CacheError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def _keep(cache: Cache) -> Path:
    with cache.building("recipe", lambda _: None) as work:
        (work / "made.so").write_text("code")
        return cache.keep_library("recipe", work / "made.so", "mine", {})


def _record(cache: Cache) -> Path:
    return cache.root / "recipes" / "recipe.json"


def _outside(cache: Cache) -> Path:
    """A library outside the cache, under every name that a record could contain."""
    outside = cache.root.parent / "outside"
    outside.mkdir()
    (outside / "mine.so").write_text("code")
    return outside / "mine.so"


@pytest.mark.parametrize(
    "product",
    [
        "../outside/mine.so",
        "/{outside}",
        "{outside}",
        "libraries/../../outside/mine.so",
        "libraries/{content}/../../../outside/mine.so",
        "objects/{content}.so",
        "libraries/{content}/mine.so\n",
    ],
)
def test_a_record_cannot_refer_outside_its_cache(cache: Cache, product: str) -> None:
    kept = _keep(cache)
    outside = _outside(cache)
    (variant,) = json.loads(_record(cache).read_text())
    variant["product"] = product.format(outside=outside, content=kept.parent.name)
    variant["state"] = list(state_of(outside, hash_all=True))
    _record(cache).write_text(json.dumps([variant]))
    assert cache.find("recipe") is None
    assert _keep(cache) == kept
    assert cache.find("recipe") == kept


@pytest.mark.parametrize("level", ["file", "folder", "all"])
def test_a_symbolic_link_cannot_refer_outside_the_cache(cache: Cache, level: str) -> None:
    kept = _keep(cache)
    outside = _outside(cache)
    link = {"file": kept, "folder": kept.parent, "all": kept.parents[1]}[level]
    target = {"file": outside, "folder": outside.parent, "all": outside.parent}[level]
    if level == "all":
        shutil.copytree(kept.parent, outside.parent / kept.parent.name)
    if link.is_dir():
        shutil.rmtree(link)
    else:
        link.unlink()
    link.symlink_to(target)
    (variant,) = json.loads(_record(cache).read_text())
    variant["state"] = list(state_of(kept, hash_all=True))
    _record(cache).write_text(json.dumps([variant]))
    assert cache.find("recipe") is None
    before = {path: path.stat().st_mtime_ns for path in outside.parent.rglob("*")}
    assert _keep(cache) == kept
    assert cache.find("recipe") == kept
    assert not link.is_symlink()
    assert {path: path.stat().st_mtime_ns for path in outside.parent.rglob("*")} == before


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _folder(path: Path) -> None:
    path.mkdir()
    (path / "inside").write_text("")


def _huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**33)


def _deep(path: Path) -> None:
    path.write_text("[" * 10**6)


def _nothing_but_a_link(path: Path) -> None:
    path.symlink_to(path)


@pytest.mark.parametrize("damage", [_pipe, _folder, _huge, _deep, _nothing_but_a_link])
@pytest.mark.parametrize("what", ["record", "product", "source", "record-of-a-folder", "folder"])
def test_a_path_that_is_not_a_cached_file_is_replaced(cache: Cache, damage: Callable[[Path], None], what: str) -> None:
    def keep() -> list[Path]:
        with cache.building("folder", lambda _: None) as work:
            (work / "prefix").mkdir()
            (work / "prefix/file").write_text("text")
            folder = cache.keep_folder("folder", work / "prefix")
        return [_keep(cache), cache.keep_source("int a;", "a.cpp"), folder]

    kept = keep()
    places = [_record(cache), kept[0], kept[1], kept[2].with_suffix(".json"), kept[2]]
    path = dict(zip(("record", "product", "source", "record-of-a-folder", "folder"), places, strict=True))[what]
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    damage(path)
    found = [cache.find("recipe"), cache.find_folder("folder")]
    assert [path is None for path in found] == [what in {"record", "product"}, "folder" in what]
    assert keep() == kept
    assert [cache.find("recipe"), cache.find_folder("folder")] == [kept[0], kept[2]]
    assert kept[1].read_text() == "int a;"


def _keep_everything(cache: Cache) -> None:
    with cache.building("recipe", lambda _: None) as work:
        for name in ("made.o", "made.so"):
            (work / name).write_text("code")
        cache.keep_object("object", work / "made.o", {})
        cache.keep_library("library", work / "made.so", "mine", {})
        (work / "prefix").mkdir()
        (work / "prefix/file").write_text("text")
        cache.keep_folder("folder", work / "prefix")
    cache.keep_source("int a;", "a.cpp")


@pytest.mark.parametrize("place", ["recipes", "objects", "libraries", "locks", "work", "entries", "inline", "folders"])
@pytest.mark.parametrize("damage", [_pipe, _nothing_but_a_link])
def test_a_path_that_is_not_a_cache_folder_is_a_cache_error_or_replaced(
    cache: Cache, damage: Callable[[Path], None], place: str
) -> None:
    cache.root.mkdir(parents=True)
    damage(cache.root / place)
    try:
        _keep_everything(cache)
    except CacheError as error:
        message = str(error)
        (cache.root / place).unlink()
        _keep_everything(cache)
        assert "cannot be written: " in message
    assert cache.find("object") is not None
    assert cache.find("library") is not None
    assert cache.find_folder("folder") is not None


@pytest.mark.parametrize("name", ["builds", "keep", "recipe.lock"])
def test_a_lock_that_is_a_folder_is_a_cache_error(cache: Cache, name: str) -> None:
    (cache.root / "locks" / name).mkdir(parents=True)
    with pytest.raises(CacheError, match="cannot be written: Is a directory"):
        _keep(cache)


def test_a_cache_that_is_removed_during_a_build_is_a_cache_error_or_recreated(cache: Cache) -> None:
    def remove() -> None:
        with cache.building("recipe", lambda _: None) as work:
            shutil.rmtree(cache.root)
            (work / "made.so").write_text("code")

    with pytest.raises(CacheError, match="cannot be written: No such file or directory"):
        remove()
    kept = _keep(cache)
    shutil.rmtree(cache.root)
    assert cache.find("recipe") is None
    assert _keep(cache) == kept
