"""The checks of the libraries in ops/, whole and in parts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

import opwright
from opwright.checker.runtime_table import RUNTIMES
from opwright.spec import Make, library_at

pytestmark = pytest.mark.usefixtures("forked")

OPS = Path(__file__).parents[2] / "ops"
COMPILED = tuple(row.name for row in RUNTIMES if not row.quick)


@dataclass(frozen=True)
class Check:
    """What to check, and the runtimes that the operators do not claim; None if that differs between them."""

    folder: str
    ops: tuple[str, ...]
    not_claimed: frozenset[str] | None
    quick: bool = False
    runtimes: tuple[str, ...] = ()

    def status(self, runtime: str) -> str | None:
        if self.not_claimed is None:
            return None
        if runtime in self.not_claimed:
            return "not applicable"
        return "not run" if self.quick and runtime in COMPILED else "passed"


EVERYWHERE, NOT_UNDER_VMAP = frozenset[str](), frozenset({"vmap"})
OPENCV = [pytest.mark.needs("opencv")]
SLOW = [pytest.mark.slow]
WARP = ("warp_perspective",)


@pytest.mark.sample(of="long")
@pytest.mark.parametrize(
    "check",
    [
        pytest.param(Check("warp_perspective", WARP, NOT_UNDER_VMAP, quick=True), id="opencv-quick", marks=OPENCV),
        pytest.param(Check("warp_perspective", WARP, NOT_UNDER_VMAP), id="opencv", marks=[*OPENCV, *SLOW]),
        pytest.param(Check("geometry", WARP, EVERYWHERE, quick=True), id="warp-quick"),
        pytest.param(Check("geometry", WARP, EVERYWHERE, runtimes=COMPILED), id="warp-compiled"),
        pytest.param(Check("geometry", WARP, EVERYWHERE), id="warp", marks=SLOW),
        pytest.param(Check("geometry", ("warp_perspective_backward",), None, quick=True), id="backward", marks=SLOW),
        pytest.param(Check("lltm", ("cell",), NOT_UNDER_VMAP), id="cell"),
        pytest.param(Check("lltm", ("sequence",), NOT_UNDER_VMAP), id="sequence", marks=SLOW),
        pytest.param(Check("lltm", ("sequence",), NOT_UNDER_VMAP, quick=True), id="sequence-quick"),
        pytest.param(
            Check("lltm", ("cell_with_gates", "cell_with_gates_backward"), None, quick=True), id="cell-training"
        ),
        pytest.param(
            Check("lltm", ("sequence_with_gates", "sequence_with_gates_backward"), None, quick=True),
            id="sequence-training",
            marks=SLOW,
        ),
    ],
)
def test_every_claimed_runtime_passes(check: Check) -> None:
    report = opwright.check(
        OPS / check.folder, ops=check.ops, devices=["cpu"], runtimes=check.runtimes, quick=check.quick, seed=0
    )
    assert report.passed, [(cell.op, cell.runtime, cell.failures) for cell in report.cells if cell.failures]
    passed = [cell for cell in report.cells if cell.status == "passed"]
    assert all(cell.cases > 0 for cell in passed)
    assert {cell.op.partition("::")[2] for cell in passed} == set(check.ops)
    for cell in report.cells:
        assert cell.status == (check.status(cell.runtime) or cell.status), cell.runtime


def test_photographs_are_among_the_samples() -> None:
    op = library_at(OPS / "warp_perspective").ops["warp_perspective"]
    shapes = [tuple(op.bind(sample)["image"].shape) for sample in op.draw(Make())]
    assert shapes[:2] == [(512, 512, 3), (512, 512)]
