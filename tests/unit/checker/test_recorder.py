from __future__ import annotations

from typing import Any

import pytest

from opwright.checker.kinds import Kind
from opwright.checker.recorder import MARK, Recorder, read, written
from opwright.checker.verdict import Failure


@pytest.fixture
def events() -> list[dict[str, Any]]:
    return []


def recorder(events: list[dict[str, Any]], *skip: str) -> Recorder:
    return Recorder("mine::f", "eager", "cpu", events.append, frozenset(skip))


def test_a_step_is_announced_before_it_runs(events: list[dict[str, Any]]) -> None:
    assert recorder(events).begin("sample 1", "f(x)", Kind.FREED)
    where = {"op": "mine::f", "runtime": "eager", "device": "cpu"}
    assert events == [
        {"event": "step", **where, "step": "sample 1", "repro": "f(x)", "crash": "freed-memory", "group": ""}
    ]


def test_a_step_that_ended_a_process_is_not_repeated(events: list[dict[str, Any]]) -> None:
    again = recorder(events, "sample 1")
    assert not again.begin("sample 1")
    assert again.died_of("sample 1")
    assert again.has_died
    assert not recorder(events).has_died
    assert again.begin("sample 2")
    assert [event["step"] for event in events] == ["sample 2"]


def test_a_group_with_several_crashes_is_skipped_with_a_note(events: list[dict[str, Any]]) -> None:
    cell = Recorder("mine::f", "eager", "cpu", events.append, frozenset({"x flat"}), frozenset({"bad rank of x"}))
    for step, group in (("x flat", "bad rank of x"), ("x deep", "bad rank of x"), ("y deep", "bad rank of y")):
        cell.begin(step, group=group)
    assert [event["step"] for event in events] == ["y deep"]
    assert cell.died_of("x deep", "bad rank of x")
    assert cell.cell().reason == "cases skipped because similar ones crash: 1 (bad rank of x)"


def test_the_first_failure_of_each_kind_is_kept_and_announced_with_its_repro(events: list[dict[str, Any]]) -> None:
    cell = recorder(events)
    for kind, case, repro in ((Kind.TAIL, "plain", "f(x)"), (Kind.LEAK, "other", ""), (Kind.TAIL, "later", "f(y)")):
        cell.fail(Failure(kind, case, repro))
    assert [failure.case for failure in cell.cell().failures] == ["plain", "other"]
    assert events == [{"event": "fault", "repro": "f(x)"}, {"event": "fault", "repro": ""}]
    assert cell.failed
    assert cell.has(Kind.LEAK, Kind.RACE)
    assert not cell.has(Kind.RACE)


def test_rejected_cases_count_as_cases(events: list[dict[str, Any]]) -> None:
    counting = recorder(events)
    counting.ok()
    counting.ok()
    counting.rejected()
    counting.note("a note")
    counting.note("a note")
    counting.note("another")
    cell = counting.cell()
    assert (cell.status, cell.cases, cell.rejected, cell.reason) == ("passed", 3, 1, "a note; another")
    assert not counting.failed
    assert counting.cell("not applicable", "it has none").reason == "it has none"


def test_an_event_can_be_read_from_its_line() -> None:
    event = {"event": "step", "step": "línea\nof two lines", "repro": f"{MARK}\x00"}
    lines = written(event).split("\n")
    assert [found for line in lines if (found := read(line))] == [event]


def test_an_event_survives_earlier_output_on_its_line() -> None:
    printed = f"a kernel prints without an end{written({'event': 'end'})}more"
    assert [read(line) for line in printed.split("\n")] == [None, {"event": "end"}, None]


def test_a_truncated_event_is_not_an_event() -> None:
    line = written({"event": "step", "step": "sample 1"}).strip("\n")
    assert read(line) is not None
    assert read(line[:-3]) is None
