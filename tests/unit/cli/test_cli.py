from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from opwright.host.install import PACKAGES
from tests.interpreter import python

VERBS = ("new", "build", "check", "bench", "ship", "migrate", "verify", "run", "map", "cache", "doctor")


def opwright(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*python(), "-m", "opwright", *arguments],
        env={**os.environ, "COLUMNS": "200", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_help_names_every_verb_and_every_exit_code() -> None:
    shown = opwright("--help").stdout
    for word in (*VERBS, "Exit codes: 0 success, 1 any other error, 2 wrong usage, 3 invalid op.py"):
        assert word in shown


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_a_verb_has_examples_and_json(verb: str) -> None:
    shown = opwright(verb, "--help").stdout
    assert "Examples" in shown
    assert f"opwright {verb}" in shown
    assert "--json" in shown


@pytest.mark.parametrize("verb", VERBS)
def test_each_example_in_the_help_fits_on_a_line_of_80_columns(verb: str) -> None:
    shown = opwright(verb, "--help", COLUMNS="80").stdout
    examples = shown.partition("Examples:")[2].partition("\n\n\n")[0].split("\n\n")
    lines = [example.strip("\n") for example in examples if example.strip().startswith("opwright")]
    assert lines
    assert all(re.fullmatch(rf" +opwright {verb}\b[^\n]*", line) for line in lines), lines


def test_run_without_a_bundle_shows_its_own_help() -> None:
    ended = opwright("run", "--help")
    assert ended.returncode == 0
    assert "opwright run my_bundle --input photo.jpg" in ended.stdout


def test_an_error_is_one_message_on_stderr_with_its_exit_code_and_no_colour(tmp_path: Path) -> None:
    ended = opwright("build", str(tmp_path))
    assert ended.returncode == 3
    assert ended.stdout == ""
    assert ended.stderr.startswith("error: ")
    assert "does not contain an operator library: expected an op.py at" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "\x1b" not in ended.stderr


def test_the_doctor_finds_the_tools_of_this_machine() -> None:
    ended = opwright("doctor", "--json", "-")
    findings = {finding["what"]: finding for finding in json.loads(ended.stdout)["findings"]}
    assert ended.returncode == 0
    assert findings["PyTorch"]["found"]
    assert findings["C++ compiler"]["found"]
    assert all(bool(finding["found"]) != bool(finding["advice"]) for finding in findings.values())


def test_the_doctor_reports_missing_tools_and_how_to_install_them() -> None:
    ended = opwright("doctor", CXX="/no/such/g++")
    assert ended.returncode == 4
    assert "missing" in ended.stdout
    assert "$CXX names /no/such/g++" in ended.stdout
    missing = opwright("doctor", "--package", "no-such-package")
    assert missing.returncode == 4
    assert "'no-such-package' is not installed" in missing.stdout


def test_the_doctor_lists_the_requirements_of_the_host_as_optional(tmp_path: Path) -> None:
    nowhere = {"PKG_CONFIG_LIBDIR": str(tmp_path), "PKG_CONFIG_PATH": ""}
    ended = opwright("doctor", "--json", "-", **nowhere)
    findings = {finding["what"]: finding for finding in json.loads(ended.stdout)["findings"]}
    assert ended.returncode == 0
    for name, debian in PACKAGES.items():
        assert findings[name]["advice"] == f"{name}'s development files: install the package {debian}"
        assert "the host" in findings[name]["needed"]


def test_the_doctor_reports_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ended = opwright("doctor", OPWRIGHT_CACHE=str(tmp_path / "file"))
    assert ended.returncode == 4
    assert "cannot be written" in ended.stdout


def test_a_json_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    ended = opwright("doctor", "--json", str(tmp_path / "nowhere" / "out.json"))
    assert ended.returncode == 1
    assert ended.stderr.endswith(
        "out.json cannot be written: No such file or directory. Name a file in a folder that exists, or - for "
        "standard output\n"
    )


# The library does not exist either, but the target is checked first.
@pytest.mark.parametrize("arguments", ["doctor", "doctor --json -", "--help"])
def test_a_full_standard_output_is_reported_in_one_line(arguments: str) -> None:
    command = [sys.executable, "-m", "opwright", *arguments.split()]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr == "error: standard output cannot be used: No space left on device\n"


def test_json_to_a_closed_standard_output_is_an_error() -> None:
    command = f"exec {shlex.quote(sys.executable)} -m opwright doctor --json - >&-"
    ended = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: --json - cannot be written: Bad file descriptor. ")


@pytest.mark.parametrize("arguments", ["check no --json", "check no --html", "bench no --json", "bench no --html"])
def test_a_report_that_cannot_be_written_is_an_error_before_the_work_starts(arguments: str, tmp_path: Path) -> None:
    for target, reason in ((tmp_path / "nowhere" / "out", "No such file or directory"), (tmp_path, "Is a directory")):
        ended = opwright(*arguments.split(), str(target))
        assert ended.returncode == 1
        assert f"{target} cannot be written: {reason}. Name a file in a folder that exists" in ended.stderr
        assert "Traceback" not in ended.stderr
        assert ("- for standard output" in ended.stderr) == ("--json" in arguments)


def test_a_result_may_be_written_to_a_folder_that_the_verb_itself_creates(tmp_path: Path) -> None:
    ended = opwright("new", str(tmp_path / "mine"), "--json", str(tmp_path / "mine" / "new.json"))
    assert ended.returncode == 0, ended.stderr
    assert json.loads((tmp_path / "mine" / "new.json").read_text())
