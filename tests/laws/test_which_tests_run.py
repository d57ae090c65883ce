"""Which tests run: OPWRIGHT_REQUIRE makes a test fail if a tool is missing; --runslow adds the slow tests.

OPWRIGHT_SAMPLE chooses the parameters of sampled tests.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"


def run_tests(folder: Path, source: str, *options: str, **environment: str) -> str:
    """Runs one file of tests under the project's conftest.py, on a machine with an empty PATH."""
    shutil.copy(CONFTEST, folder)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n  compiles\n  needs\n  sample\n  slow\n", encoding="utf-8")
    (folder / "test_it.py").write_text(f"import pytest\n{source}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-ra", "-p", "no:cacheprovider", "-p", "no:xdist", *options, str(folder)]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "OPWRIGHT"))}
    done = subprocess.run(
        command,
        cwd=folder,
        env={**kept, "PATH": "", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


NEEDS_CLANG = "@pytest.mark.needs('clang')\ndef test_a(): pass"


def test_a_missing_tool_skips_the_test_and_is_named(tmp_path: Path) -> None:
    output = run_tests(tmp_path, NEEDS_CLANG)
    assert "needs clang++ on PATH" in output
    assert "1 skipped" in output


def test_the_switch_turns_the_skip_into_a_failure(tmp_path: Path) -> None:
    output = run_tests(tmp_path, NEEDS_CLANG, OPWRIGHT_REQUIRE="cmake, clang")
    assert "needs clang++ on PATH, which is missing, but OPWRIGHT_REQUIRE requires clang" in output
    assert "skipped" not in output


def test_the_switch_does_not_change_other_skips(tmp_path: Path) -> None:
    assert "1 skipped" in run_tests(tmp_path, NEEDS_CLANG, OPWRIGHT_REQUIRE="cmake")


def test_an_available_tool_lets_the_test_run(tmp_path: Path) -> None:
    (tmp_path / "clang++").touch(mode=0o755)
    assert "1 passed" in run_tests(tmp_path, NEEDS_CLANG, OPWRIGHT_REQUIRE="clang", PATH=str(tmp_path))


@pytest.mark.parametrize(
    ("source", "switch", "names"),
    [
        ("def test_a(): pass", "coda", "the environment variable OPWRIGHT_REQUIRE names coda"),
        ("@pytest.mark.needs('coda')\ndef test_a(): pass", "", "the mark of test_it.py::test_a names coda"),
    ],
)
def test_an_unknown_name_stops_the_run(tmp_path: Path, source: str, switch: str, names: str) -> None:
    output = run_tests(tmp_path, source, OPWRIGHT_REQUIRE=switch)
    assert f"{names}; expected some of arm, chroot, clang, cmake, cuda" in output
    assert "passed" not in output


SLOW = "@pytest.mark.slow\ndef test_a(): pass\ndef test_b(): pass"


def test_a_slow_test_does_not_run_and_is_counted(tmp_path: Path) -> None:
    assert "1 passed, 1 deselected" in run_tests(tmp_path, SLOW)


def test_runslow_runs_all_tests(tmp_path: Path) -> None:
    assert "2 passed" in run_tests(tmp_path, SLOW, "--runslow")


SAMPLED = """
@pytest.mark.sample(2)
@pytest.mark.parametrize("n", range(9))
def test_a(n): pass
@pytest.mark.sample(of="both")
def test_b(): pass
@pytest.mark.sample(of="both")
def test_c(): pass
"""


def test_a_sample_runs_and_another_one_in_another_commit(tmp_path: Path) -> None:
    first, other = (run_tests(tmp_path, SAMPLED, "-v", OPWRIGHT_SAMPLE=seed) for seed in "12")
    for output in (first, other):
        assert "3 passed, 8 deselected" in output
        assert len(re.findall(r"test_[bc] PASSED", output)) == 1
    chosen = [re.findall(r"test_a\[(\d)\] PASSED", output) for output in (first, other)]
    assert chosen[0] != chosen[1]


def test_a_selected_parameter_runs_whatever_the_sample(tmp_path: Path) -> None:
    assert "1 passed" in run_tests(tmp_path, SAMPLED, "-k", "test_a and 4")
    assert "11 passed" in run_tests(tmp_path, SAMPLED, "--runslow")
