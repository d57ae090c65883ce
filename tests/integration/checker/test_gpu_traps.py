"""Tests that a check on a GPU finds every planted fault, names its kind, and passes the repaired twin."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import opwright
from opwright.builder.library import build_library
from opwright.spec import library_at

if TYPE_CHECKING:
    from opwright.checker.verdict import Report

TRAPS = Path(__file__).parents[2] / "packages" / "gpu_traps"
EXPECTED: dict[str, dict[str, Any]] = json.loads((TRAPS / "expected.json").read_text())


def checked(name: str, *, fail_fast: bool = False) -> Report:
    """A report on the runtimes in which the trap is visible."""
    trap = EXPECTED[name]
    runtimes = ["eager", "autograd"] if trap["runtime"] == "autograd" else [trap["runtime"]]
    return opwright.check(
        TRAPS / name,
        runtimes=runtimes,
        devices=["cuda"],
        quick=True,
        large=trap.get("large", False),
        seed=0,
        fail_fast=fail_fast,
    )


@pytest.mark.needs("cuda", "nvcc")
@pytest.mark.parametrize("name", EXPECTED)
def test_a_planted_fault_is_caught_and_its_kind_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPWRIGHT_TRAP", "faulty")
    wanted = set(EXPECTED[name]["kind"])
    # The first fault is usually the planted one, and stopping there takes a fraction of the time.
    if not wanted & {kind.value for kind in checked(name, fail_fast=True).kinds}:
        assert wanted & {kind.value for kind in checked(name).kinds}


@pytest.mark.needs("cuda", "nvcc")
@pytest.mark.parametrize("name", EXPECTED)
def test_the_repaired_twin_passes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPWRIGHT_TRAP", "repaired")
    report = checked(name)
    faults = [(cell.runtime, failure) for cell in report.cells for failure in cell.failures]
    assert report.passed, faults or report.failures


@pytest.mark.slow
@pytest.mark.needs("nvcc")
def test_every_twin_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "9.0")
    libraries = []
    for build in ("faulty", "repaired"):
        monkeypatch.setenv("OPWRIGHT_TRAP", build)
        libraries += [library_at(TRAPS / name) for name in EXPECTED]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        built = list(pool.map(lambda library: build_library(library, cuda=True), libraries))
    assert len({found.path for found in built}) == 2 * len(EXPECTED)
