"""The whole matrix of a real operator: OpenCV's warp, on photographs, in all eleven runtimes."""

from __future__ import annotations

from pathlib import Path

import pytest

import opwright
from opwright.checker.runtime_table import RUNTIMES
from opwright.spec import Make, library_at

pytestmark = [pytest.mark.needs("opencv"), pytest.mark.usefixtures("forked")]

FOLDER = Path(__file__).parents[3] / "ops" / "warp_perspective"


@pytest.mark.parametrize("quick", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_every_runtime_passes_except_the_one_that_is_not_claimed(*, quick: bool) -> None:
    report = opwright.check(FOLDER, quick=quick, seed=0)
    assert report.passed, [(cell.runtime, cell.failures) for cell in report.cells if cell.failures]
    statuses = {cell.runtime: cell.status for cell in report.cells}
    ran = {row.name: "passed" if row.quick or not quick else "not run" for row in RUNTIMES}
    assert statuses == {**ran, "vmap": "not applicable"}
    (vmap,) = [cell for cell in report.cells if cell.runtime == "vmap"]
    assert vmap.reason == "not claimed; @library.op(vmap=True) claims it"
    assert all(cell.cases > 0 for cell in report.cells if cell.status == "passed")


def test_photographs_are_among_the_samples() -> None:
    op = library_at(FOLDER).ops["warp_perspective"]
    shapes = [tuple(op.bind(sample)["image"].shape) for sample in op.draw(Make())]
    assert shapes[:2] == [(512, 512, 3), (512, 512)]
