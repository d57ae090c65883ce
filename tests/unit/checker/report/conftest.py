from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from opwright.checker.kinds import Kind
from opwright.checker.runtime_table import RUNTIME_NAMES
from opwright.checker.verdict import Cell, Failure, Report

if TYPE_CHECKING:
    from collections.abc import Callable

    from opwright.checker.verdict import Status

CALL = 'import torch\nmine = opwright.open("ops/mine")\nmine.ops.scale(torch.arange(6.0).reshape(2, 3).t(), factor=2.5)'


def strides(runtime: str) -> Failure:
    return Failure(Kind.STRIDES, f"x transposed, in {runtime}", CALL, "[0, 1, 2]", "[0, 3, 1]")


@pytest.fixture
def report() -> Report:
    """Two operators in all eleven runtimes: one fault in three of them, another in one, and every other status."""
    dtype = Failure(Kind.WRONG_DTYPE, "x of float64", "mine.ops.scale(x)", "1.3e+09", "an exception")
    found: dict[tuple[str, str], Cell] = {
        (cell.op, cell.runtime): cell
        for cell in (
            Cell("mine::scale", "eager", "cpu", "failed", "", 3, failures=(strides("eager"), dtype), seconds=1.2),
            Cell("mine::scale", "trace", "cpu", "failed", failures=(strides("trace"),)),
            Cell("mine::scale", "script", "cpu", "failed", failures=(strides("script"),)),
            Cell("mine::scale", "export", "cpu", "passed", "dynamic shapes were left out", 40, 12),
        )
    }
    waiting: dict[str, tuple[Status, str]] = {
        "vmap": ("not applicable", "the operator does not claim it"),
        "host-linked": ("not run", "no C++ compiler"),
        "host-script": ("not run", "no C++ compiler"),
    }
    cells = [
        found.get((op, runtime)) or Cell(op, runtime, "cpu", *waiting.get(runtime, ("passed", "")))
        for op in ("mine::scale", "mine::shift")
        for runtime in RUNTIME_NAMES
    ]
    return Report("mine", "ops/mine", "2.13.0", "a machine", 7, cells=tuple(cells), seconds=34.2)


@pytest.fixture
def report_of() -> Callable[..., Report]:
    """Returns a function that creates a report of failures of one cell or of the library."""

    def make(*failures: Failure, library: tuple[Failure, ...] = ()) -> Report:
        cells = (Cell("mine::scale", "eager", "cpu", "failed", failures=failures),) if failures else ()
        return Report("mine", "ops/mine", "2.13.0", "a machine", 0, cells=cells, failures=library, seconds=3)

    return make
