"""The output of `opwright new` builds and is correct in every runtime without changes."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import opwright
from opwright.scaffold.create import create
from opwright.scaffold.flavour import Flavour
from tests.interpreter import python

if TYPE_CHECKING:
    from opwright.checker.verdict import Report

pytestmark = pytest.mark.usefixtures("forked")


def marks(report: Report) -> dict[str, dict[str, str]]:
    """The status of each operator, by runtime."""
    found: dict[str, dict[str, str]] = {}
    for cell in report.cells:
        found.setdefault(cell.op, {})[cell.runtime] = cell.status
    return found


def opwright_in(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # In a separate folder, as a user would run it.
    environment = {**os.environ, "COLUMNS": "200"}
    command = [*python(), "-m", "opwright", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.sample(of="long")
def test_a_new_library_is_correct_in_every_runtime(tmp_path: Path) -> None:
    made = opwright_in(tmp_path, "new", "new_demo")
    assert made.returncode == 0, made.stderr
    checked = opwright_in(tmp_path, "check", "new_demo", "--seed", "0", "--json", "report.json")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    status = {(cell["op"].partition("::")[2], cell["runtime"]): cell["status"] for cell in report["cells"]}
    assert len(status) == 22
    assert {place for place, found in status.items() if found != "passed"} == {
        ("swiglu_backward", "vmap"),
        ("swiglu_backward", "trace"),
    }


@pytest.mark.needs("opencv")
def test_a_new_library_with_opencv_is_correct(tmp_path: Path) -> None:
    report = opwright.check(create(tmp_path / "new_opencv", Flavour.OPENCV).folder, quick=True, seed=0)
    assert report.passed, report.kinds
    passed = [runtime for runtime, status in marks(report)["new_opencv::gaussian_blur"].items() if status == "passed"]
    assert passed == ["eager", "autograd", "compile", "trace", "script"]


def test_a_new_library_without_native_sources_is_correct_and_needs_no_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "/no/such/compiler")
    report = opwright.check(create(tmp_path / "new_python", Flavour.PYTHON_ONLY).folder, quick=True, seed=0)
    assert report.passed, report.kinds
    passed = [runtime for runtime, status in marks(report)["new_python::swiglu"].items() if status == "passed"]
    assert passed == ["eager", "autograd", "compile", "vmap", "trace", "script"]


@pytest.mark.sample(of="long", by="file")
def test_a_new_library_with_cuda_is_correct_on_the_cpu(tmp_path: Path) -> None:
    folder = create(tmp_path / "new_cuda", Flavour.CUDA).folder
    report = opwright.check(folder, quick=True, devices=["cpu"], runtimes=["eager", "autograd"], seed=0)
    assert report.passed, report.kinds


@pytest.mark.sample(of="long", by="file")
@pytest.mark.needs("nvcc")
def test_a_new_library_with_cuda_builds_for_the_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "9.0")
    built = opwright.build(create(tmp_path / "new_cuda_built", Flavour.CUDA).folder, cuda=True)
    # The kernels' names, for each dtype: f, d, and two half-precision types.
    assert built.read_bytes().count(b"SwiGLUGradients") >= 4


@pytest.mark.needs("nvcc", "cuda")
def test_a_new_library_with_cuda_is_correct_on_the_gpu(tmp_path: Path) -> None:
    report = opwright.check(
        create(tmp_path / "new_cuda_run", Flavour.CUDA).folder, quick=True, devices=["cuda"], seed=0
    )
    assert report.passed, report.kinds
