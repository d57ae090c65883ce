"""Benches of native kernels that are correct when they are verified, and cheat when they are timed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.bencher.test_bench import bench, rows

CHEATS = Path(__file__).parents[2] / "packages" / "cheats"
CHANGED = "wrong when timed: the result changed after the call had returned"
# The start of the reason. On a busy machine threads may be late, so that results are just wrong.
WRONG = {
    "cached_by_pointer": ("wrong when timed: float32 (",),
    "cached_by_fingerprint": ("wrong when timed: float32 (",),
    "idle_later": ("wrong when timed: float32 (",),
    "one_call_late": (CHANGED, "wrong when timed: float32 ("),
    "in_background": (CHANGED, "wrong when timed: float32 ("),
    "clears_its_argument": ("wrong when timed: the call changed an argument that it does not declare in mutates",),
}


@pytest.fixture(scope="module")
def cells() -> dict[tuple[str, str], dict[str, Any]]:
    ended = bench(CHEATS, "--no-compile", "--rounds", "9", "--threads", "1", "--json", "-")
    assert ended.returncode == 1, ended.stderr
    report = json.loads(ended.stdout)
    assert report["passed"] is False
    return {(cell["op"].removeprefix("cheats::"), cell["size"]): cell for cell in report["cells"]}


@pytest.mark.parametrize("op", WRONG)
@pytest.mark.parametrize("size", ["small", "large"])
def test_a_kernel_that_cheats_when_timed_has_no_time(
    cells: dict[tuple[str, str], dict[str, Any]], op: str, size: str
) -> None:
    found = rows(cells[op, size])
    assert {name: row["status"] for name, row in found.items()} == {
        "reference": "timed",
        "native": "wrong",
        "floor": "timed",
    }
    assert found["native"]["reason"].startswith(WRONG[op]), found["native"]["reason"]
    assert "seconds" not in found["native"]


def test_a_kernel_that_does_not_cheat_is_timed(cells: dict[tuple[str, str], dict[str, Any]]) -> None:
    for size in ("small", "large"):
        for row in cells["honest", size]["rows"]:
            assert row["status"] == "timed", row["reason"]
            assert len(row["processor_seconds"]["times"]) == 9
            assert row["processor_seconds"]["median"] > 0


def test_a_kernel_that_raises_when_timed_is_a_fault_of_its_row(cells: dict[tuple[str, str], dict[str, Any]]) -> None:
    native = rows(cells["raises_later", "large"])["native"]
    assert (native["status"], native["reason"].startswith("RuntimeError: enough for today")) == ("raises", True)


def test_a_kernel_that_is_faster_than_the_floor_has_no_time(cells: dict[tuple[str, str], dict[str, Any]]) -> None:
    cell = cells["remembered", "large"]
    native = rows(cell)["native"]
    assert native["status"] == "too fast"
    assert native["reason"].startswith("faster than the floor: ")
    assert "state its floor with @remembered.floor" in native["reason"]
    assert cell["contents"] == "it has no random argument"
