"""The contents of the wheel."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import opwright

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    options = ["--quiet", "--no-build-isolation", "--no-deps", "--no-index", "--wheel-dir", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, ROOT], check=True)
    return zipfile.ZipFile(next(folder.glob("*.whl")))


def test_it_contains_every_file_of_the_package(wheel: zipfile.ZipFile) -> None:
    listed = subprocess.run(["git", "ls-files", "src"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = {path.removeprefix("src/") for path in listed.splitlines() if (ROOT / path).is_file()}
    assert {"opwright/host/cpp/CMakeLists.txt", "opwright/py.typed"} <= files
    assert files <= set(wheel.namelist())


def test_its_version_is_that_of_the_package(wheel: zipfile.ZipFile) -> None:
    assert f"opwright-{opwright.__version__}.dist-info/METADATA" in wheel.namelist()
