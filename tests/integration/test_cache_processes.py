"""Concurrent, killed and pruning processes, with few of each; benchmarks/cache_robustness.py runs many."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.sample(of="long", by="file")

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "cache_robustness.py"


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, int]]:
    target = tmp_path_factory.mktemp("robustness") / "figures.json"
    numbers = ["--processes", "6", "--kills", "6", "--rounds", "1"]
    ended = subprocess.run(
        [sys.executable, SCRIPT, *numbers, "--json", target], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return dict(json.loads(target.read_text()))


def test_six_concurrent_processes_build_once(figures: dict[str, dict[str, int]]) -> None:
    assert figures["one build"]["that_compiled"] == 1
    assert figures["one build"]["compilers"] == 1
    assert figures["one build"]["linkers"] == 1


def test_a_load_is_correct_after_a_kill_at_any_time(figures: dict[str, dict[str, int]]) -> None:
    assert figures["kills"]["killed"] == 6
    assert figures["kills"]["left_behind"] == 0


def test_pruning_while_eight_processes_build_loses_nothing(figures: dict[str, dict[str, int]]) -> None:
    assert figures["pruning"]["removed"] > 0
    assert figures["pruning"]["builds"] == figures["pruning"]["found"] + figures["pruning"]["compiled_again"]
