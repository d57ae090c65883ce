"""The check of the warp and of its gradient: quick, compiled, and complete."""

from __future__ import annotations

import pytest

import opwright
from opwright.checker.runtime_table import RUNTIME_NAMES, RUNTIMES
from tests.integration.geometry.conftest import FOLDER

pytestmark = pytest.mark.usefixtures("forked")


@pytest.mark.slow
def test_every_runtime_passes() -> None:
    report = opwright.check(FOLDER, ops=["warp_perspective"], devices=["cpu"], seed=0)
    assert report.passed, [(cell.runtime, cell.failures) for cell in report.cells if cell.failures]
    statuses = {cell.runtime: cell.status for cell in report.cells}
    assert statuses == dict.fromkeys(RUNTIME_NAMES, "passed")
    assert all(cell.cases > 0 for cell in report.cells)


@pytest.mark.parametrize(
    "name", ["warp_perspective", pytest.param("warp_perspective_backward", marks=pytest.mark.slow)]
)
def test_the_warp_and_its_gradient_pass_the_quick_check(name: str) -> None:
    report = opwright.check(FOLDER, ops=[name], devices=["cpu"], quick=True, seed=0)
    assert report.passed, [(cell.op, cell.runtime, cell.failures) for cell in report.cells if cell.failures]
    assert {cell.op for cell in report.cells if cell.status == "passed"} == {f"geometry::{name}"}


def test_the_warp_passes_in_the_runtimes_that_compile_models() -> None:
    runtimes = [row.name for row in RUNTIMES if not row.quick]
    report = opwright.check(FOLDER, ops=["warp_perspective"], runtimes=runtimes, devices=["cpu"], seed=0)
    assert report.passed, [(cell.runtime, cell.failures) for cell in report.cells if cell.failures]
    assert {cell.runtime: cell.status for cell in report.cells} == dict.fromkeys(runtimes, "passed")
