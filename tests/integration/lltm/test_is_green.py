"""The complete check of the cell and of the sequence, and the quick check of the other operators."""

from __future__ import annotations

import pytest

import opwright
from opwright.checker.runtime_table import RUNTIME_NAMES
from tests.integration.lltm.conftest import FOLDER

pytestmark = pytest.mark.usefixtures("forked")


@pytest.mark.parametrize("name", ["cell", pytest.param("sequence", marks=pytest.mark.slow)])
def test_every_claimed_runtime_passes(name: str) -> None:
    report = opwright.check(FOLDER, ops=[name], devices=["cpu"], seed=0)
    assert report.passed, [(cell.runtime, cell.failures) for cell in report.cells if cell.failures]
    statuses = {cell.runtime: cell.status for cell in report.cells}
    assert statuses == {**dict.fromkeys(RUNTIME_NAMES, "passed"), "vmap": "not applicable"}
    assert all(cell.cases > 0 for cell in report.cells if cell.status == "passed")


def test_the_sequence_passes_the_quick_check() -> None:
    report = opwright.check(FOLDER, ops=["sequence"], devices=["cpu"], quick=True, seed=0)
    assert report.passed, [(cell.runtime, cell.failures) for cell in report.cells if cell.failures]
    assert {cell.runtime for cell in report.cells if cell.status == "passed"} >= {"eager", "autograd", "compile"}


@pytest.mark.parametrize("name", ["cell", pytest.param("sequence", marks=pytest.mark.slow)])
def test_training_forms_and_gradients_pass_the_quick_check(name: str) -> None:
    ops = [f"{name}_with_gates", f"{name}_with_gates_backward"]
    report = opwright.check(FOLDER, ops=ops, devices=["cpu"], quick=True, seed=0)
    assert report.passed, [(cell.op, cell.runtime, cell.failures) for cell in report.cells if cell.failures]
    assert {cell.op for cell in report.cells if cell.status == "passed"} == {f"lltm::{op}" for op in ops}
