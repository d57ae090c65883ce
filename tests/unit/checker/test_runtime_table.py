"""The table of runtimes agrees with the modules that it names."""

from __future__ import annotations

from pathlib import Path

import pytest

import opwright.checker.runtimes
from opwright.checker.processes.worker import runtime_module
from opwright.checker.runtime_table import LANES, RUNTIME_NAMES, RUNTIMES, runtime_row

FOLDER = Path(opwright.checker.runtimes.__file__).parent


def test_the_folder_of_runtimes_contains_the_eleven_and_their_protocol() -> None:
    modules = {path.stem for path in FOLDER.glob("*.py")}
    assert modules == {*(name.replace("-", "_") for name in RUNTIME_NAMES), "runtime", "__init__"}
    assert len(RUNTIMES) == 11


@pytest.mark.parametrize("name", RUNTIME_NAMES)
def test_each_row_names_a_module_that_is_a_runtime(name: str) -> None:
    module = runtime_module(name)
    assert module.NAME == name == runtime_row(name).name
    assert callable(module.why_not)
    assert callable(module.run)


def test_each_runtime_runs_in_a_lane_and_each_lane_has_one() -> None:
    assert {row.lane for row in RUNTIMES} == set(LANES)
