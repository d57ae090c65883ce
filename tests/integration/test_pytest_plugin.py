"""The pytest plugin in a fresh project with one operator library."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

DESCRIPTION = """
import opwright
import torch
from torch import Tensor

library = opwright.Library("plugged")

@library.op
def scale(x: Tensor, factor: float) -> Tensor:
    return x * factor

@scale.samples
def _(make):
    yield make.randn(5, 7), 2.5

@scale.kernel(device="cpu")
def _(x, factor):
    return KERNEL
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "ops/plugged").mkdir(parents=True)
    return tmp_path


def written(project: Path, kernel: str) -> None:
    (project / "ops/plugged/op.py").write_text(DESCRIPTION.replace("KERNEL", kernel))


def run(project: Path, *arguments: str) -> tuple[int, str]:
    options = ["-p", "no:cacheprovider", "-v", "--opwright-seed", "0", *arguments]
    command = [sys.executable, "-m", "pytest", *options, "ops"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    environment["COLUMNS"] = "200"
    ended = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False, env=environment)
    return ended.returncode, ended.stdout


def test_each_operator_in_each_runtime_is_a_test(project: Path) -> None:
    written(project, "x * factor")
    status, output = run(project, "--opwright", "--collect-only", "-q")
    assert status == 0, output
    assert len(re.findall(r"<CellItem scale\[[\w-]+\]>", output)) == 11


@pytest.mark.sample(of="pytest plugin")
def test_a_correct_operator_passes_and_runtimes_that_do_not_apply_are_skipped_with_a_reason(project: Path) -> None:
    written(project, "x * factor")
    status, output = run(project, "--opwright", "--opwright-quick", "--junitxml=junit.xml", "-rs")
    assert status == 0, output
    assert re.search(r"scale\[eager\] PASSED", output)
    assert "not applicable: not claimed; @library.op(vmap=True) claims it" in output
    (suite,) = ET.parse(project / "junit.xml").getroot()
    assert {case.attrib["name"] for case in suite} >= {"scale[eager]", "scale[script]", "scale[host-aoti]"}
    assert (suite.attrib["tests"], suite.attrib["failures"]) == ("11", "0")


@pytest.mark.sample(of="long")
def test_xdist_distributes_the_tests(project: Path) -> None:
    written(project, "x * factor")
    status, output = run(project, "--opwright", "--opwright-quick", "-n", "2", "-k", "script or trace")
    assert status == 0, output
    assert len(re.findall(r"\[gw\d\].* PASSED .*scale\[(?:script|trace)\]", output)) == 2
    assert "2 passed" in output


@pytest.mark.sample(of="pytest plugin")
def test_a_failed_test_shows_the_report_of_a_check(project: Path) -> None:
    written(project, "x + factor")
    status, output = run(project, "--opwright", "--opwright-quick", "--opwright-seed", "3", "-k", "eager")
    assert status == 1
    assert "10 deselected" in output
    assert "plugged::scale in eager; the same cases again: --opwright-seed 3" in output
    assert "the result is wrong (wrong-result)" in output
    assert "torch.ops.plugged.scale(x, 2.5)" in output
    assert "Traceback" not in output


def test_an_invalid_op_py_is_an_error_with_its_message(project: Path) -> None:
    (project / "ops/plugged/op.py").write_text("import opwright\nopwright.Library('aten')\n")
    status, output = run(project, "--opwright")
    assert status == 2
    assert "the namespace 'aten' is reserved for PyTorch" in output


def test_without_the_option_nothing_is_collected(project: Path) -> None:
    written(project, "x * factor")
    status, output = run(project)
    assert status == 5
    assert "no tests ran" in output
