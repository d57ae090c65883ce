from __future__ import annotations

import json
import os
import threading
import time
from typing import TYPE_CHECKING

import pytest

from opwright.cache import prune as pruning
from opwright.cache.bound import Bound
from opwright.cache.cache import Cache
from opwright.cache.entries import Entry, list_entries
from opwright.cache.usage import Usage
from opwright.errors import CacheError
from opwright.storage.file_system import Mount
from opwright.storage.lock import locked

if TYPE_CHECKING:
    from pathlib import Path

_DAY_S = 86_400.0


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def _object(cache: Cache, recipe: str, size: int = 1000, days: float = 0) -> Path:
    """Keep an object of `size` bytes that was last used `days` days ago."""
    with cache.building(recipe, lambda _: None) as work:
        (work / "made.o").write_bytes(recipe.encode().ljust(size, b"\0"))
        kept = cache.keep_object(recipe, work / "made.o", {}, about={"name": f"{recipe}.cpp", "torch": "2.13.0"})
    _date(cache, kept.stem, days)
    return kept


def _date(cache: Cache, name: str, days: float) -> None:
    then = time.time() - days * _DAY_S
    os.utime(Usage(cache.root).entry(name), (then, then))


def _left(cache: Cache) -> set[str]:
    return {entry.name for entry in list_entries(cache.root)}


def test_the_least_recently_used_entries_are_removed_until_the_rest_fits(cache: Cache) -> None:
    for days in (2, 5, 3, 4):
        _object(cache, f"{days}-days", days=days)
    done = cache.prune(Bound(size=2000 + 2000, age_s=None))  # records also count
    assert [entry.name for entry in done.removed] == ["5-days.cpp", "4-days.cpp"]
    assert _left(cache) == {"2-days.cpp", "3-days.cpp"}
    assert cache.find("5-days") is None
    assert cache.find("2-days") is not None
    assert not (cache.root / "recipes/5-days.json").exists()
    assert (done.size, done.spared) == (2000, 0)


def test_old_entries_are_removed_regardless_of_size(cache: Cache) -> None:
    _object(cache, "young", days=89)
    _object(cache, "old", days=91)
    assert [entry.name for entry in cache.prune(Bound()).removed] == ["old.cpp"]
    assert _left(cache) == {"young.cpp"}


def test_entries_used_within_a_day_stay_regardless_of_the_limits(cache: Cache) -> None:
    _object(cache, "today", days=0.9)
    _object(cache, "yesterday", days=1.1)
    done = cache.prune(Bound(0, 0))
    assert [entry.name for entry in done.removed] == ["yesterday.cpp"]
    assert (done.size, done.spared) == (1000, 1000)


def test_a_dry_run_lists_what_would_be_removed_and_removes_nothing(cache: Cache) -> None:
    _object(cache, "old", days=100)
    before = sorted(cache.root.rglob("*"))
    assert [entry.name for entry in cache.prune(Bound(), dry_run=True).removed] == ["old.cpp"]
    assert [entry.name for entry in cache.clear(dry_run=True).removed] == ["old.cpp"]
    assert sorted(cache.root.rglob("*")) == before


def test_using_an_entry_renews_its_date(cache: Cache) -> None:
    def find() -> list[Path | None]:
        source = cache.keep_source("int a;", "a.cpp")
        return [cache.find("object"), cache.find("library"), cache.find_folder("folder"), source]

    _object(cache, "object")
    with cache.building("others", lambda _: None) as work:
        (work / "made.so").write_text("library")
        cache.keep_library("library", work / "made.so", "mine", {})
        (work / "prefix").mkdir()
        (work / "prefix/file").write_text("folder")
        cache.keep_folder("folder", work / "prefix", {"name": "host"})
    first = find()
    assert {(entry.kind, entry.name) for entry in list_entries(cache.root)} == {
        ("object", "object.cpp"),
        ("library", "mine"),
        ("folder", "host"),
        ("source", "a.cpp"),
    }
    for entry in list_entries(cache.root):
        assert entry.date is not None
        _date(cache, entry.date.stem, 100)
    assert find() == first
    assert cache.prune(Bound()).removed == ()
    assert find() == first


def test_an_entry_that_is_used_between_selection_and_removal_stays(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = _object(cache, "old", days=100)
    choose = pruning._chosen

    def find_meanwhile(*arguments: object) -> list[Entry]:
        chosen = list(choose(*arguments))  # type: ignore[arg-type]  # passed through
        assert cache.find("old") == kept
        return chosen

    monkeypatch.setattr(pruning, "_chosen", find_meanwhile)
    assert cache.prune(Bound(0, 0)).removed == ()
    assert cache.find("old") == kept


def test_content_that_is_added_again_between_selection_and_removal_stays(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = _object(cache, "old", days=100)
    choose = pruning._chosen

    def keep_meanwhile(*arguments: object) -> list[Entry]:
        chosen = list(choose(*arguments))  # type: ignore[arg-type]  # passed through
        (cache.root / "made").write_bytes(kept.read_bytes())
        assert cache.keep_object("another", cache.root / "made", {}) == kept
        return chosen

    monkeypatch.setattr(pruning, "_chosen", keep_meanwhile)
    assert cache.prune(Bound(0, 0)).removed == ()
    assert cache.find("another") == kept


def test_an_entry_that_is_being_removed_is_not_found(cache: Cache) -> None:
    kept = _object(cache, "old", days=100)
    found: list[Path | None] = []
    finder = threading.Thread(target=lambda: found.append(cache.find("old")))
    with Usage(cache.root).removing(10) as alone:
        assert alone
        finder.start()
        finder.join(0.3)  # it waits until the removal has finished
        assert found == []
        kept.unlink()
    finder.join()
    assert found == [None]


def test_nothing_is_removed_while_an_entry_is_added(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "_PATIENCE_S", 0.0)
    _object(cache, "old", days=100)
    with Usage(cache.root).keeping():
        assert cache.prune(Bound()).removed == ()
    assert len(cache.prune(Bound()).removed) == 1


def test_a_library_is_removed_as_a_whole_and_a_folder_with_its_record(cache: Cache) -> None:
    with cache.building("folder", lambda _: None) as work:
        (work / "prefix/bin").mkdir(parents=True)
        (work / "prefix/bin/program").write_text("code")
        cache.keep_folder("folder", work / "prefix")
        (work / "made").write_text("library")
        library = cache.keep_library("library", work / "made", "mine", {})
    for name in ("folder", library.parent.name):
        _date(cache, name, 100)
    assert {entry.kind for entry in cache.prune(Bound()).removed} == {"library", "folder"}
    assert list((cache.root / "folders").iterdir()) == []
    assert list((cache.root / "libraries").iterdir()) == []
    assert list((cache.root / "work").iterdir()) == []
    assert list((cache.root / "entries").iterdir()) == []


def test_entries_of_other_programs_are_removed_by_file_date_but_not_while_in_use(cache: Cache) -> None:
    folder = cache.foreign_folder("inductor")
    (folder / "old").mkdir()
    (folder / "old/code.so").write_text("code")
    entry = next(entry for entry in list_entries(cache.root) if entry.kind == "inductor")
    assert entry.used_at > time.time() - 100
    with cache.using_foreign_folder("inductor"):
        pruning.prune(cache.root, Bound(0, 0), spared_s=float("-inf"))
        assert (folder / "old/code.so").exists()
    pruning.prune(cache.root, Bound(0, 0), spared_s=float("-inf"))
    assert list(folder.iterdir()) == []


def test_older_layouts_are_removed_only_by_age(cache: Cache) -> None:
    older = cache.root.parent / "3"
    older.mkdir(parents=True)
    (older / "file").write_bytes(bytes(5000))
    (cache.root.parent / "notes").mkdir()
    assert [(entry.kind, entry.size) for entry in list_entries(cache.root)] == [("older layout", 5000)]
    assert pruning.prune(cache.root, Bound(0, _DAY_S), spared_s=float("-inf")).removed == ()
    assert len(pruning.prune(cache.root, Bound(0, -1.0), spared_s=float("-inf")).removed) == 1
    assert not older.exists()
    assert (cache.root.parent / "notes").is_dir()


def test_clearing_removes_everything_but_fails_during_a_build(cache: Cache) -> None:
    _object(cache, "today")
    cache.keep_source("int a;", "a.cpp")
    with (
        cache.building("recipe", lambda _: None),
        pytest.raises(CacheError, match=r"^the cache at .* is in use by a build: wait until the build has finished"),
    ):
        cache.clear()
    assert len(cache.clear().removed) == 2
    assert _left(cache) == set()
    assert list((cache.root / "recipes").iterdir()) == []


def test_builds_keep_the_cache_within_its_limits(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPWRIGHT_CACHE_SIZE", "1500")
    _object(cache, "first", days=3)
    _object(cache, "second", days=2)
    assert _left(cache) == {"first.cpp", "second.cpp"}  # checked a moment ago
    before = time.time() - pruning.INTERVAL_S - 1
    os.utime(cache.root / "pruned", (before, before))
    _object(cache, "third")
    assert _left(cache) == {"third.cpp"}


@pytest.mark.parametrize(
    ("options", "left"),
    [("rw,local_lock=none", {"young.cpp"}), ("rw,local_lock=all", {"young.cpp", "old.cpp"})],
)
def test_on_a_network_builds_remove_only_very_old_entries_and_none_without_shared_locks(
    cache: Cache, monkeypatch: pytest.MonkeyPatch, options: str, left: set[str]
) -> None:
    _object(cache, "young", days=50)
    _object(cache, "old", days=100)
    mount = Mount(cache.root, "nfs4", frozenset(options.split(",")))
    monkeypatch.setattr(pruning, "mount_of", lambda _: mount)
    (cache.root / "pruned").unlink()
    pruning.stay_within(Bound(size=0), cache.root)
    assert _left(cache) == left
    assert len(cache.prune(Bound(0, 0)).removed) == len(left)  # on request


def test_a_failure_to_prune_does_not_fail_the_build(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    _object(cache, "old", days=100)
    (cache.root / "pruned").unlink()

    def fail(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(pruning, "list_entries", fail)
    assert _object(cache, "new").exists()


def test_only_one_process_prunes_at_a_time(cache: Cache) -> None:
    _object(cache, "old", days=100)
    with locked(cache.root / "locks/prune.lock"):
        assert cache.prune(Bound()).removed == ()
    assert len(cache.prune(Bound()).removed) == 1


def test_files_of_a_killed_prune_are_removed_by_the_next_build(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = _object(cache, "old", days=100)

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            cache.prune(Bound())
    assert [path.name for path in (cache.root / "work").rglob("*.o")] == [kept.name]
    assert cache.find("old") is None
    _object(cache, "new")
    assert list((cache.root / "work").iterdir()) == []


def test_old_locks_and_descriptions_of_missing_entries_are_removed(cache: Cache) -> None:
    kept = _object(cache, "recipe", days=3)
    kept.unlink()
    then = time.time() - 3 * _DAY_S
    lock = cache.root / "locks/recipe.lock"
    lock.touch()
    os.utime(lock, (then, then))
    cache.prune(Bound())
    assert not lock.exists()
    assert list((cache.root / "entries").iterdir()) == []


@pytest.mark.parametrize("text", ["", "[]", "{", '{"name": 1, "kind": ["x"]}', '{"name": "\\ud800", "torch": null}'])
def test_a_malformed_description_hides_nothing(cache: Cache, text: str) -> None:
    kept = _object(cache, "recipe")
    Usage(cache.root).entry(kept.stem).write_text(text)
    (entry,) = list_entries(cache.root)
    assert (entry.kind, entry.place) == ("object", kept)
    json.dumps(entry.about)


def test_an_entry_without_a_description_is_as_old_as_its_files(cache: Cache) -> None:
    kept = _object(cache, "recipe")
    Usage(cache.root).entry(kept.stem).unlink()
    (entry,) = list_entries(cache.root)
    assert entry.used_at == pytest.approx(kept.stat().st_ctime)
    assert cache.find("recipe") == kept
    assert Usage(cache.root).entry(kept.stem).exists()


def test_no_link_is_followed_out_of_the_cache(cache: Cache, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/file").write_text("")
    _object(cache, "recipe")
    for name in ("libraries/abc", "strange", "objects/abc.o"):
        (cache.root / name).parent.mkdir(exist_ok=True)
        (cache.root / name).symlink_to(tmp_path / "mine")
    (cache.root.parent / "2").symlink_to(tmp_path / "mine")
    assert [entry.name for entry in list_entries(cache.root)] == ["recipe.cpp"]
    cache.clear()
    assert (tmp_path / "mine/file").exists()
