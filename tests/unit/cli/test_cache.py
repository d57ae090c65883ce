from __future__ import annotations

import json
import os
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from opwright.cache.cache import Cache
from opwright.cache.usage import Usage
from tests.interpreter import python

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    """A cache with a library used yesterday, and an object used a year ago."""
    kept = Cache(tmp_path / "cache")
    with kept.building("recipe", lambda _: None) as work:
        (work / "made.so").write_bytes(bytes(3000))
        about = {"torch": "2.13.0+cpu", "compiler": "/usr/bin/g++-12", "source": "/ops/mine"}
        library = kept.keep_library("library", work / "made.so", "mine", {}, about=about)
        (work / "made.o").write_bytes(bytes(2000))
        part = kept.keep_object("object", work / "made.o", {}, about={"name": "[red]cpu.cpp"})
    for name, days in ((library.parent.name, 1.5), (part.stem, 300)):
        then = time.time() - days * 86_400
        os.utime(Usage(kept.root).entry(name), (then, then))
    return kept


def _opwright(cache: Cache, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*python(), "-m", "opwright", "cache", *arguments],
        env={**os.environ, "COLUMNS": "150", "OPWRIGHT_CACHE": str(cache.root.parent), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_lists_libraries_and_the_sizes_of_the_rest(cache: Cache) -> None:
    shown = _opwright(cache)
    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert lines[:3] == [f"{cache.root}: 4.88 KiB", "  library: 1, 2.93 KiB", "  object: 1, 1.95 KiB"]
    assert lines[4].split() == ["library", "mine", "2.93", "KiB", "2", "d", "ago", "2.13.0+cpu", "g++-12", "/ops/mine"]
    assert lines[5] == f"builds keep at most 9.31 GiB in {cache.root}"
    assert "[red]cpu.cpp" not in shown.stdout
    assert "[red]cpu.cpp" in _opwright(cache, "--all").stdout


def test_json_has_everything(cache: Cache, tmp_path: Path) -> None:
    result = json.loads(_opwright(cache, "--json", "-", OPWRIGHT_CACHE_SIZE="5GB").stdout)
    assert (result["path"], result["size"]) == (str(cache.root), 5000)
    assert result["bound"] == {"size": 5 * 10**9, "seconds": 90 * 86_400}
    library, part = result["entries"]
    assert library | {"used_at": 0, "path": ""} == {
        "kind": "library",
        "name": "mine",
        "path": "",
        "size": 3000,
        "used_at": 0,
        "torch": "2.13.0+cpu",
        "compiler": "/usr/bin/g++-12",
        "source": "/ops/mine",
    }
    assert part["torch"] is None
    assert part["used_at"] == pytest.approx(time.time() - 300 * 86_400, abs=1000)
    empty = json.loads(_opwright(cache, "--json", "-", OPWRIGHT_CACHE=str(tmp_path / "none")).stdout)
    assert (empty["size"], empty["entries"]) == (0, [])


def test_a_shared_cache_is_listed_too(cache: Cache, tmp_path: Path) -> None:
    cache.root.parent.chmod(0o755)
    layered = {"OPWRIGHT_CACHE": str(tmp_path / "own"), "OPWRIGHT_SHARED_CACHE": str(cache.root.parent)}
    assert f"{cache.root}: 4.88 KiB" in _opwright(cache, **layered).stdout
    (shared,) = json.loads(_opwright(cache, "--json", "-", **layered).stdout)["shared"]
    assert [entry["name"] for entry in shared["entries"]] == ["mine", "[red]cpu.cpp"]


def test_prune_removes_old_entries_and_reports_them(cache: Cache) -> None:
    dry = _opwright(cache, "prune", "--older-than", "30d", "--dry-run")
    assert dry.stdout.splitlines() == [
        "would remove object: 1, 1.95 KiB",
        "2.93 KiB left, 0 B of it used within the last day",
    ]
    done = _opwright(cache, "prune", "--older-than", "30d", "--json", "-")
    result = json.loads(done.stdout)
    assert (result["dry_run"], result["freed"], result["size"]) == (False, 2000, 3000)
    assert [entry["kind"] for entry in result["removed"]] == ["object"]
    assert _opwright(cache, "prune", "--max-size", "1KB").stdout.startswith("removed library: 1, 2.93 KiB\n")


def test_prune_without_options_does_what_builds_do(cache: Cache) -> None:
    assert _opwright(cache, "prune").stdout.startswith("removed object: 1")
    assert _opwright(cache, "prune", OPWRIGHT_CACHE_SIZE="1KB").stdout.startswith("removed library: 1")


def test_clear_removes_everything_unless_a_build_is_in_progress(cache: Cache) -> None:
    with cache.building("recipe", lambda _: None):
        refused = _opwright(cache, "clear")
    assert refused.returncode == 7
    assert refused.stderr.startswith(f"error: the cache at {cache.root} is in use by a build: ")
    done = _opwright(cache, "clear")
    assert done.stdout.splitlines()[-1] == "0 B left, 0 B of it used within the last day"
    assert cache.find("library") is None


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--max-size", "7X", "'7X' is not a size: expected a number with a unit, such as 5GB or 500MB"),
        ("--older-than", "30", "'30' is not an age: expected a number with a unit, such as 30d, 12h or 2w"),
        ("--older-than", "-3d", "'-3d' is not an age"),
    ],
)
def test_an_invalid_size_or_age_is_a_usage_error(cache: Cache, option: str, value: str, message: str) -> None:
    ended = _opwright(cache, "prune", option, value)
    assert ended.returncode == 2
    assert message in ended.stderr


def test_a_cache_that_cannot_be_pruned_or_read_exits_with_the_cache_code(cache: Cache, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for verb in ("prune", "clear"):
        ended = _opwright(cache, verb, OPWRIGHT_CACHE=str(tmp_path / "file"))
        assert ended.returncode == 7
        assert ended.stderr.startswith(f"error: the cache at {tmp_path}/file/")
    wrong = _opwright(cache, OPWRIGHT_CACHE_SIZE="much")
    assert wrong.returncode == 7
    assert "OPWRIGHT_CACHE_SIZE is 'much': expected a size" in wrong.stderr


@pytest.mark.parametrize("verb", ["prune", "clear"])
def test_the_help_of_a_subcommand_has_examples(cache: Cache, verb: str) -> None:
    assert f"opwright cache {verb}" in _opwright(cache, verb, "--help").stdout.partition("Examples:")[2]
