from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from opwright.cli.main import app

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result


def new(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["new", *map(str, arguments)], env={"COLUMNS": "200"})


def test_it_prints_what_it_created_and_four_next_commands(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    lines = new(folder).stdout.splitlines()
    assert lines[0] == f"{folder}: op.py, cpu.cpp, with the operator mine::swiglu"
    assert lines[1] == "Next:"
    assert [line.split("  ")[1] for line in lines[2:]] == [
        f"opwright build {folder}",
        f"opwright check {folder} --quick",
        f"opwright check {folder}",
        f"opwright bench {folder}",
    ]


def test_the_next_commands_can_be_pasted_for_every_folder_name(tmp_path: Path) -> None:
    result = json.loads(new(tmp_path / "with spaces" / "mine", "--json", "-").stdout)
    assert [shlex.split(command)[2] for command in result["next"]] == [str(tmp_path / "with spaces" / "mine")] * 4


def test_without_native_sources_no_build_is_suggested(tmp_path: Path) -> None:
    shown = new(tmp_path / "mine", "--python-only").stdout
    assert "opwright build" not in shown
    assert "opwright doctor" in shown


@pytest.mark.parametrize(
    ("flag", "flavour", "operator"),
    [
        ((), "cpu", "swiglu"),
        (("--cuda",), "cuda", "swiglu"),
        (("--opencv",), "opencv", "gaussian_blur"),
        (("--python-only",), "python-only", "swiglu"),
    ],
)
def test_json_contains_everything(tmp_path: Path, flag: tuple[str, ...], flavour: str, operator: str) -> None:
    result = json.loads(new(tmp_path / "mine", *flag, "--json", "-").stdout)
    assert result["path"] == str(tmp_path / "mine")
    assert result["namespace"] == "mine"
    assert result["flavour"] == flavour
    assert result["operators"] == [f"mine::{operator}"]
    assert sorted(result["files"]) == sorted(path.name for path in (tmp_path / "mine").iterdir())
    assert len(result["next"]) == 4


@pytest.mark.parametrize("flags", [("--cuda", "--opencv"), ("--opencv", "--python-only"), ("--cuda", "--python-only")])
def test_two_flavours_are_a_usage_error(tmp_path: Path, flags: tuple[str, str]) -> None:
    ended = new(tmp_path / "mine", *flags)
    assert ended.exit_code == 2
    assert f"{flags[0]} and {flags[1]} are mutually exclusive" in ended.stderr
    assert not (tmp_path / "mine").exists()


def test_help_has_an_example_of_every_flavour() -> None:
    shown = new("--help").stdout
    for words in ("Examples", "opwright new my_ops", "--cuda", "--opencv", "--python-only", "--json"):
        assert words in shown
