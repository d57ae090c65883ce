from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from opwright.checker.kinds import Kind
from opwright.checker.verdict import STATUSES, Cell, Failure, Report, Status, shortened

FAILURE = Failure(Kind.TAIL, "x of 9", "f(torch.ones(9))", "8.0", "9.0", "at [8]")
CELL = Cell("mine::f", "eager", "cpu", "failed", "a reason", 40, 12, (FAILURE, Failure(Kind.LEAK)), 1.5)


def through_json(given: dict[str, Any]) -> dict[str, Any]:
    return dict(json.loads(json.dumps(given)))


def report(*statuses: Status, failures: tuple[Failure, ...] = ()) -> Report:
    cells = tuple(Cell("mine::f", str(number), "cpu", status) for number, status in enumerate(statuses))
    return Report("mine", "ops/mine", "2.13.0", "a machine", 0, cells=cells, failures=failures)


def test_a_cell_and_its_failures_can_be_read_back_from_json() -> None:
    assert Cell.from_json(through_json(CELL.to_json())) == CELL


def test_json_contains_the_name_of_the_kind_and_its_diagnosis() -> None:
    written = FAILURE.to_json()
    assert written["kind"] == "vector-tail"
    assert (written["title"], written["cause"], written["fix"]) == dataclasses.astuple(Kind.TAIL.diagnosis)[:3]


def test_the_json_of_a_report_contains_its_verdict() -> None:
    written = through_json(
        dataclasses.replace(report(failures=(FAILURE,)), cells=(CELL,), sanitize=("address",)).to_json()
    )
    assert written["passed"] is False
    assert written["sanitize"] == ["address"]
    assert [Cell.from_json(cell) for cell in written["cells"]] == [CELL]
    assert [failure["kind"] for failure in written["failures"]] == ["vector-tail"]


@pytest.mark.parametrize("status", STATUSES)
def test_only_a_failed_cell_makes_a_check_fail(status: Status) -> None:
    assert report("passed", status).passed == (status != "failed")


@pytest.mark.parametrize("statuses", [(), ("not run",), ("not applicable", "not run")])
def test_a_check_in_which_no_cell_ran_does_not_pass(statuses: tuple[Status, ...]) -> None:
    assert not report(*statuses).ran
    assert not report(*statuses).passed
    assert report(*statuses, "passed").passed
    assert report(*statuses, "failed").ran


def test_a_fault_of_the_library_makes_a_check_fail() -> None:
    assert not report("passed", failures=(FAILURE,)).passed


def test_the_kinds_of_a_report_are_those_of_its_cells_and_of_the_library() -> None:
    found = dataclasses.replace(report(failures=(Failure(Kind.LOAD),)), cells=(CELL,)).kinds
    assert found == {Kind.TAIL, Kind.LEAK, Kind.LOAD}


def test_a_long_text_keeps_its_start_and_its_end() -> None:
    assert shortened("short", 5) == "short"
    assert shortened("start" + "x" * 90 + "end!!", 10) == "start\n[...]\nend!!"
