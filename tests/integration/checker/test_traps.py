"""Tests that a check finds every planted fault, names its kind, and passes the repaired twin."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opwright.checker.verdict import Report

pytestmark = pytest.mark.usefixtures("forked")

TRAPS = Path(__file__).parents[2] / "packages" / "traps"
EXPECTED: dict[str, dict[str, Any]] = json.loads((TRAPS / "expected.json").read_text())


def checked(name: str, *, fail_fast: bool = False) -> Report:
    """A report on the runtimes in which the trap shows; that of a gradient may show in calls of its operator."""
    trap = EXPECTED[name]
    runtimes = ["eager", "autograd"] if trap["runtime"] in {"autograd", "library"} else [trap["runtime"]]
    # Only a full search finds the few values at which some faults show.
    quick = not trap.get("full", False)
    return opwright.check(TRAPS / name, runtimes=runtimes, quick=quick, seed=0, fail_fast=fail_fast)


def kinds_of(report: Report) -> set[str]:
    """The kinds of the faults in a report."""
    return {kind.value for kind in report.kinds}


def params(names: Iterable[str]) -> list[Any]:
    """Parameters of a test; those of traps whose kinds earlier traps have are slow."""
    found: set[str] = set()
    made = []
    for name in names:
        kinds = EXPECTED[name]["kind"]
        made.append(pytest.param(name, marks=[pytest.mark.slow] if found.issuperset(kinds) else []))
        found.update(kinds)
    return made


# Whether a detached thread is late depends on the load of the machine.
SCHEDULED = {"late_work"}


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", params([name for name in EXPECTED if name not in SCHEDULED]))
def test_a_planted_fault_is_caught_and_its_kind_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPWRIGHT_TRAP", "faulty")
    wanted = set(EXPECTED[name]["kind"])
    if EXPECTED[name].get("all"):
        assert wanted <= kinds_of(checked(name))
        return
    # The first fault is usually the planted one, and stopping there takes a fraction of the time.
    if not wanted & kinds_of(checked(name, fail_fast=True)):
        assert wanted & kinds_of(checked(name))


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", params(EXPECTED))
def test_the_repaired_twin_passes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPWRIGHT_TRAP", "repaired")
    report = checked(name)
    faults = [(cell.runtime, failure) for cell in report.cells for failure in cell.failures]
    assert report.passed, faults or report.failures


def test_an_operator_written_as_in_tutorials_has_three_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPWRIGHT_TRAP", "faulty")
    report = opwright.check(TRAPS / "tutorial_style_op", runtimes=["eager"], quick=True, seed=0)
    (cell,) = report.cells
    found = {failure.kind.value: failure for failure in cell.failures}
    assert {"wrong-dtype", "ignored-strides", "bad-input-accepted"} <= set(found)
    assert "opwright::check::dtype" in found["wrong-dtype"].kind.diagnosis.fix
    assert "torch.load(" in found["ignored-strides"].repro
    assert "an error, as raised by the reference" in found["bad-input-accepted"].expected
