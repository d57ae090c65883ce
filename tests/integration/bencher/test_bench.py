"""Complete benches of a small library, including compiled references."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.interpreter import python

TIMED = Path(__file__).parents[2] / "packages" / "timed"


def bench(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*python(), "-m", "opwright", "bench", *map(str, arguments)],
        env={**os.environ, "COLUMNS": "200", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def rows(cell: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in cell["rows"]}


def test_all_four_rows_are_timed_except_wrong_ones(tmp_path: Path) -> None:
    asked = ("--rounds", "3", "--threads", "1", "--size", "64 rows", "--size", "sample")
    ended = bench(TIMED, *asked, "--html", tmp_path / "page.html", "--json", tmp_path / "report.json")
    assert ended.returncode == 1, ended.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["passed"] is False
    mixed = [cell for cell in report["cells"] if cell["op"] == "timed::mixed"]
    assert [cell["direction"] for cell in mixed] == ["forward", "recorded", "backward", "both"]
    for cell in mixed:
        assert (cell["threads"], cell["size"], cell["ended"]) == (1, "64 rows", "3 rounds")
        assert list(rows(cell)) == ["reference", "compiled", "native", "floor"]
        for row in cell["rows"]:
            assert row["status"] == "timed", row["reason"]
            assert len(row["seconds"]["times"]) == 3
            assert row["ratio"]["median"] > 0
    floors = ["one sum", "one sum", "a copy that moves 32.0 KiB", "one sum and a copy that moves 32.0 KiB"]
    assert [cell["floor"] for cell in mixed] == floors

    (shifted,) = (cell for cell in report["cells"] if cell["op"] == "timed::shifted")
    found = rows(shifted)
    assert {name: row["status"] for name, row in found.items()} == {
        "reference": "timed",
        "compiled": "timed",
        "native": "wrong",
        "floor": "timed",
    }
    assert "seconds" not in found["native"]
    assert "1 of 40 elements differ, the largest difference is 1" in found["native"]["reason"]

    assert "shifted on cpu, 1 thread, float32\nsize      direction  reference" in ended.stdout
    assert "WRONG" in ended.stdout
    assert ended.stdout.splitlines()[-1].startswith("timed: 19 rows timed in 5 cells, 1 wrong · ")
    page = (tmp_path / "page.html").read_text()
    assert page.count("<svg") == 2
    assert "src=" not in page
    assert "shifted has no sweep, so its samples are timed" in page


def test_a_correct_library_exits_with_0_and_an_unknown_operator_with_the_spec_code() -> None:
    right = bench(TIMED, "--op", "mixed", "--no-compile", "--rounds", "2", "--direction", "forward", "--json", "-")
    assert right.returncode == 0, right.stderr
    report = json.loads(right.stdout)
    assert [(cell["size"], list(rows(cell))) for cell in report["cells"]] == [
        ("4 rows", ["reference", "native", "floor"]),
        ("64 rows", ["reference", "native", "floor"]),
    ]
    wrong = bench(TIMED, "--op", "mexed")
    assert wrong.returncode == 3
    assert "error: unknown operator 'mexed': expected one of mixed, shifted" in wrong.stderr


@pytest.mark.needs("cuda")
def test_on_a_gpu_all_rows_are_timed_by_its_clock() -> None:
    asked = ("--device", "cuda", "--rounds", "3", "--op", "mixed", "--size", "64 rows", "--json", "-")
    ended = bench(TIMED, *asked)
    assert ended.returncode == 0, ended.stderr
    report = json.loads(ended.stdout)
    for cell in report["cells"]:
        for name, row in rows(cell).items():
            has_none = (name, cell["direction"]) == ("graphed", "backward")
            assert row["status"] == ("skipped" if has_none else "timed"), row["reason"]
    assert "native: mixed has no native kernel on cuda" in " ".join(report["notes"])
    assert report["machine"]["gpus"]
