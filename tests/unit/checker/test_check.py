"""The errors that `check` raises before it runs anything, its report, and the output of the program."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

import opwright
from opwright.checker.kinds import Kind
from opwright.errors import SpecError
from tests.interpreter import python

if TYPE_CHECKING:
    from pathlib import Path

    from opwright.spec import Library
    from tests.unit.conftest import Describe

pytestmark = pytest.mark.usefixtures("forked")

TWO = """
@library.op
def right(x: Tensor) -> Tensor:
    return x + 1

@library.op
def refuses(x: Tensor) -> Tensor:
    raise ValueError("it takes nothing")

@library.op
def empty(x: Tensor) -> Tensor:
    return x

@right.samples
@refuses.samples
def _(make):
    yield make.randn(4)

@empty.samples
def _(make):
    yield from ()
"""


@pytest.fixture(scope="module")
def library(describe: Describe) -> Library:
    return describe(TWO)


# -- before anything runs ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"ops": ["left"]}, "unknown operator 'left': expected one of right, refuses, empty"),
        ({"runtimes": ["eagre"]}, "unknown runtime 'eagre': expected one of eager, autograd, compile, "),
        ({"devices": ["tpu"]}, "unknown device 'tpu': expected one of cpu, cuda"),
    ],
)
def test_an_unknown_name_is_reported_with_the_known_ones(library: Library, asked: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError) as caught:
        opwright.check(library, **asked)
    assert str(caught.value).startswith(message)


def test_a_library_without_a_file_cannot_be_checked() -> None:
    with pytest.raises(SpecError, match=r"'nowhere' has no op\.py: describe it in one"):
        opwright.check(opwright.Library("nowhere"))


def test_a_folder_without_a_description_cannot_be_checked(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"does not contain an operator library: expected an op\.py at"):
        opwright.check(tmp_path)


def test_a_library_without_operators_cannot_be_checked(describe: Describe) -> None:
    with pytest.raises(SpecError, match=r"describes no operators: decorate a function in op\.py with @library\.op"):
        opwright.check(describe(""))


def test_a_sanitizer_requires_native_code(library: Library) -> None:
    with pytest.raises(SpecError, match="has no native source that a sanitizer could check"):
        opwright.check(library, sanitize=["address"])


# -- the report -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def report(library: Library) -> Any:
    return opwright.check(library, runtimes=["host-aoti", "trace", "script", "vmap"], quick=True, seed=5)


def cells(report: Any, op: str) -> dict[str, Any]:
    return {cell.runtime: cell for cell in report.cells if cell.op.endswith(f"::{op}")}


def test_cells_are_ordered_by_operator_and_runtime(report: Any, library: Library) -> None:
    names = [(cell.op, cell.runtime) for cell in report.cells]
    runtimes = ("vmap", "trace", "script", "host-aoti")
    assert names == [(f"{library.namespace}::{op}", name) for op in library.ops for name in runtimes]
    assert (report.namespace, report.path, report.seed) == (library.namespace, str(library.root), 5)


def test_a_cell_that_does_not_apply_or_was_skipped_has_a_reason_and_does_not_pass(report: Any) -> None:
    found = cells(report, "right")
    assert [cell.status for cell in found.values()] == ["not applicable", "passed", "passed", "not run"]
    assert found["vmap"].reason == "not claimed; @library.op(vmap=True) claims it"
    assert found["host-aoti"].reason == "--quick skips runtimes that compile code"


def test_empty_samples_are_a_fault_of_the_description(report: Any) -> None:
    failure = cells(report, "empty")["script"].failures[0]
    assert failure.kind is Kind.REFERENCE
    assert "yield nothing: yield the arguments of at least one call" in failure.got
    assert not report.passed


ENDS = """
import os, signal

@library.op(differentiable=())
def ends(x: Tensor) -> Tensor:
    if x.shape[0] == 2:
        os.kill(os.getpid(), signal.SIGSEGV)
    return x + 1

@ends.samples
def _(make):
    print("drawn")
    yield make.randn(make.size(4))
"""


@pytest.mark.parametrize(
    ("called", "case"),
    [
        ("", "sample 1, size 1 as 2"),  # in the process that judges, which runs the reference before the operator
        ("@ends.domain\ndef _(x):\n    return ends.reference(x) is not None\n", "before the first case"),
    ],
)
def test_a_reference_that_ends_its_process_is_a_fault_of_the_description(
    describe: Describe, called: str, case: str
) -> None:
    (cell,) = opwright.check(describe(ENDS + called), runtimes=["eager"], quick=True, seed=0).cells
    (failure,) = cell.failures
    assert (failure.kind, failure.case) == (Kind.REFERENCE, case)
    assert failure.got == "the process that runs the reference was terminated by SIGSEGV"
    assert failure.expected == "a reference that returns a result or raises"
    assert "drawn" in failure.detail
    assert '"event"' not in failure.detail


def test_the_same_seed_produces_the_same_report(report: Any, library: Library) -> None:
    again = opwright.check(library, runtimes=["host-aoti", "trace", "script", "vmap"], quick=True, seed=5)
    results = [[dataclasses.replace(cell, seconds=0) for cell in given.cells] for given in (report, again)]
    assert results[0] == results[1]


def test_the_report_is_json(report: Any) -> None:
    written = json.loads(json.dumps(report.to_json()))
    assert written["passed"] is False
    assert len(written["cells"]) == 12
    assert "reference" in {failure["kind"] for cell in written["cells"] for failure in cell["failures"]}


# -- the program ------------------------------------------------------------------------------------------


def program(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*python(), "-m", "opwright", "check", *map(str, arguments)],
        env={**os.environ, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_correct_operator_exits_with_0_and_prints_only_json_to_stdout(library: Library, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    ended = program(
        *(library.root, "--op", "right", "--runtime", "eager", "--runtime", "script", "--device", "cpu", "--quick"),
        *("--seed", "7", "--json", "-", "--html", page, "--verbose"),
    )
    assert ended.returncode == 0, ended.stderr
    written = json.loads(ended.stdout)
    assert written["passed"] is True
    assert written["seed"] == 7
    assert [(cell["runtime"], cell["device"], cell["status"]) for cell in written["cells"]] == [
        ("eager", "cpu", "passed"),
        ("script", "cpu", "passed"),
    ]
    assert library.namespace in page.read_text()
    assert f"eager   {library.namespace}::right  passed" in ended.stderr


def test_a_wrong_description_exits_with_1_and_names_the_error(library: Library, tmp_path: Path) -> None:
    json_file = tmp_path / "report.json"
    ended = program(library.root / "op.py", "--op", "refuses", "--runtime", "eager", "--quick", "--json", json_file)
    assert ended.returncode == 1
    assert "the description in op.py is wrong (reference)" in ended.stdout
    assert "ValueError: it takes nothing" in ended.stdout
    assert ended.stderr == ""
    (cell,) = json.loads(json_file.read_text())["cells"]
    (failure,) = cell["failures"]
    assert failure["case"] == "sample 1"
    assert failure["expected"] == "a result from the reference"


def test_a_check_in_which_no_cell_ran_does_not_pass(library: Library) -> None:
    ended = program(library.root, "--op", "right", "--runtime", "vmap")
    assert ended.returncode == 1
    assert "no cell ran, 1 not applicable" in ended.stdout
    assert ended.stderr == (
        "error: nothing was checked: no cell ran, for the reasons above. Choose runtimes and devices that apply\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--runtime", "eagre"], "'eagre' is not one of 'eager', 'autograd', 'compile'"),
        (["--sanitize", "undefined,adress"], "'adress' is not one of 'address', 'undefined', 'thread', 'memcheck'"),
        (["--sead", "3"], "No such option"),
    ],
)
def test_wrong_usage_exits_with_2(library: Library, arguments: list[str], message: str) -> None:
    ended = program(library.root, *arguments)
    assert ended.returncode == 2
    assert message in " ".join(ended.stderr.replace("│", "").split())
    assert ended.stdout == ""


def test_a_wrong_op_py_exits_with_3(tmp_path: Path) -> None:
    (tmp_path / "op.py").write_text("import opwright\nlibrary = opwright.Library('mine', sources=['cpu.cpp'])\n")
    ended = program(tmp_path, "--json", "-")
    assert ended.returncode == 3
    assert ended.stderr.startswith("error: 'cpu.cpp', a source of library 'mine', is missing")
    assert ended.stdout == ""
