"""The complete check of the warp, and a quick check of its gradient."""

from __future__ import annotations

import pytest

import opwright
from opwright.checker.runtime_table import RUNTIME_NAMES
from tests.integration.geometry.conftest import FOLDER

pytestmark = pytest.mark.usefixtures("forked")


def test_every_runtime_passes() -> None:
    report = opwright.check(FOLDER, ops=["warp_perspective"], devices=["cpu"], seed=0)
    assert report.passed, [(cell.runtime, cell.failures) for cell in report.cells if cell.failures]
    statuses = {cell.runtime: cell.status for cell in report.cells}
    assert statuses == dict.fromkeys(RUNTIME_NAMES, "passed")
    assert all(cell.cases > 0 for cell in report.cells)


def test_the_gradient_passes_the_quick_check() -> None:
    report = opwright.check(FOLDER, ops=["warp_perspective_backward"], devices=["cpu"], quick=True, seed=0)
    assert report.passed, [(cell.op, cell.runtime, cell.failures) for cell in report.cells if cell.failures]
    assert {cell.op for cell in report.cells if cell.status == "passed"} == {"geometry::warp_perspective_backward"}
