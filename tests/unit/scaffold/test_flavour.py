"""The files of a new library meet the same standards as this repository's own files."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from opwright.scaffold.create import create
from opwright.scaffold.flavour import Flavour
from opwright.spec import library_at

ROOT = Path(__file__).parents[3]
PYPROJECT = ["--config", str(ROOT / "pyproject.toml"), "--no-cache"]


@pytest.fixture(params=Flavour, ids=lambda flavour: flavour.value)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return create(tmp_path / "mine", request.param).folder


def said_by(*command: str | Path) -> str:
    done = subprocess.run(list(map(str, command)), text=True, capture_output=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_op_py_is_clean_python(folder: Path) -> None:
    ruff = [sys.executable, "-m", "ruff"]
    # INP001: an op library is a folder, not a package.
    assert said_by(*ruff, "check", *PYPROJECT, "--ignore", "INP001", folder) == ""
    assert said_by(*ruff, "format", "--check", *PYPROJECT, folder) == ""


def test_sources_are_formatted(folder: Path) -> None:
    sources = [path for path in folder.iterdir() if path.suffix != ".py"]
    clang_format = Path(sysconfig.get_path("scripts")) / "clang-format"
    style = f"--style=file:{ROOT / '.clang-format'}"
    assert not sources or said_by(clang_format, style, "--dry-run", "-Werror", *sources) == ""


def test_the_files_contain_no_template_syntax(folder: Path) -> None:
    texts = {path.name: path.read_text() for path in folder.iterdir()}
    for name, text in texts.items():
        assert not [mark for mark in ("{{", "{%", "{#", "\n\n\n\n") if mark in text], name
        assert text.endswith("\n"), name
        assert not text.endswith("\n\n"), name


def test_op_py_describes_the_operator_that_the_flavour_names(folder: Path) -> None:
    library = library_at(folder)
    flavour = Flavour.OPENCV if library.packages else Flavour.CPU
    assert next(iter(library.ops)) == flavour.operator
    assert library.ops[flavour.operator].has_samples
    assert (library.ops[flavour.operator].gradient is not None) == (f"{flavour.operator}_backward" in library.ops)


def test_every_file_is_short(folder: Path) -> None:
    assert all(len(path.read_text().splitlines()) <= 130 for path in folder.iterdir())
