"""Tests of operators with correct results and faulty behavior: a check names what each of them does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import opwright
from opwright.checker.kinds import Kind

if TYPE_CHECKING:
    from opwright.checker.verdict import Cell, Failure

pytestmark = pytest.mark.usefixtures("forked")

MISBEHAVING = Path(__file__).parents[2] / "packages" / "misbehaving"
A_RESULT = "a result, or an error"
# For each operator, the kind of its fault, and what the report says was found and expected.
CALLS: dict[str, tuple[Kind, str, str]] = {
    "flushes_denormals": (
        Kind.PROCESS_STATE,
        "flushing of denormals to zero: True afterwards",
        "flushing of denormals to zero: False, as before",
    ),
    "rounds_upward": (Kind.PROCESS_STATE, "the rounding mode: ", "the rounding mode: 0, as before"),
    "ignores_a_signal": (
        Kind.PROCESS_STATE,
        "signal handlers: SIGUSR1 ignored afterwards",
        "signal handlers: SIGUSR1 by default, as before",
    ),
    "sets_a_variable": (
        Kind.PROCESS_STATE,
        "environment variables: MISBEHAVING=here afterwards",
        "environment variables: MISBEHAVING unset, as before",
    ),
    "changes_the_folder": (Kind.PROCESS_STATE, "the working directory: /usr afterwards", ", as before"),
    "prints": (Kind.PROCESS_STATE, r"standard output: 'computing\n' afterwards", "standard output: nothing, as before"),
    "leaves_a_file_open": (Kind.PROCESS_STATE, "=/dev/null afterwards", "unset, as before"),
    "leaves_a_thread": (Kind.PROCESS_STATE, "the number of threads: ", ", as before"),
    "restores_its_argument": (Kind.WRITES_INPUT, "the process was terminated by SIGSEGV", A_RESULT),
    "reads_past_the_end": (Kind.OUT_OF_BOUNDS, "the process was terminated by SIGSEGV", A_RESULT),
    "writes_later": (
        Kind.LATE,
        "0.25 s after the call returned, the result has changed to float32 (16, 33)",
        "the values that it had when the call returned",
    ),
    # The first wrong call depends on which memory the allocator reuses.
    "remembers_addresses": (Kind.STATE, " elements differ", "at ["),
    "stops_computing": (
        Kind.STATE,
        " calls: float32 (16, 33), at [0, 0]: 0.0; 528 of 528 elements differ",
        "at [0, 0]",
    ),
    "fills_a_table_late": (Kind.RACE, "528 of 528 elements differ, the largest difference is 1", "at [0, 0]"),
    "ends_among_others": (Kind.RACE, "the process was terminated by SIGSEGV", A_RESULT),
    "waits_for_its_helper": (Kind.FORKED, "the call did not return", "the result of the same call in its parent"),
    "exits": (Kind.EXIT, "the process exited with code 0", A_RESULT),
    "throws_in_a_thread": (Kind.CRASH, "the process was terminated by SIGABRT", A_RESULT),
    "divides_by_the_size": (Kind.CRASH, "the process was terminated by SIGFPE", A_RESULT),
    "corrupts_the_heap": (Kind.HEAP, "the process was terminated by SIGABRT", A_RESULT),
    "forges_a_verdict": (
        Kind.CHANNEL,
        "a message lacks the check's signature: native code wrote to the check's channel",
        "only messages of the check",
    ),
}
# Faults of the library as a whole; their rows also contain the case.
LIBRARIES: dict[str, tuple[Kind, str, str, str]] = {
    "exit_code": (Kind.EXIT, "after the calls", "the process exited with code 3", "exit code 0"),
    "unjoined_thread": (Kind.EXIT, "after the calls", "the process was terminated by SIGABRT", "exit code 0"),
    "loading": (
        Kind.PROCESS_STATE,
        "loading the library",
        "flushing of denormals to zero: True afterwards",
        "flushing of denormals to zero: False, as before",
    ),
}


def checked(library: str) -> dict[str, Cell]:
    report = opwright.check(MISBEHAVING / library, runtimes=["eager"], quick=True, seed=0)
    assert report.failures == ()
    return {cell.op.partition("::")[2]: cell for cell in report.cells}


@pytest.fixture(scope="module")
def cells() -> dict[str, Cell]:
    return checked("calls")


def the_failure(cell: Cell, kind: Kind) -> Failure:
    found = {failure.kind: failure for failure in cell.failures}
    assert kind in found, found
    assert cell.status == "failed"
    return found[kind]


def test_every_operator_has_a_row(cells: dict[str, Cell]) -> None:
    assert set(cells) == {"right", *CALLS}


def test_the_correct_operator_passes(cells: dict[str, Cell]) -> None:
    assert cells["right"].failures == ()
    assert cells["right"].status == "passed"


@pytest.mark.parametrize("name", CALLS)
def test_a_side_effect_of_a_call_is_found_and_named(cells: dict[str, Cell], name: str) -> None:
    kind, got, expected = CALLS[name]
    failure = the_failure(cells[name], kind)
    assert got in failure.got
    assert expected in failure.expected
    assert f"torch.ops.misbehaving.{name}(x)" in failure.repro


def test_the_message_of_the_c_library_about_its_heap_is_shown(cells: dict[str, Cell]) -> None:
    assert "free(): " in the_failure(cells["corrupts_the_heap"], Kind.HEAP).detail


def test_the_message_of_an_uncaught_exception_is_shown(cells: dict[str, Cell]) -> None:
    assert "nothing to compute" in the_failure(cells["throws_in_a_thread"], Kind.CRASH).detail


def test_a_crash_only_with_concurrent_callers_is_just_a_race(cells: dict[str, Cell]) -> None:
    (failure,) = cells["ends_among_others"].failures
    assert failure.case.endswith("from 4 threads at once")


@pytest.mark.parametrize("name", ["exits", "throws_in_a_thread", "divides_by_the_size", "corrupts_the_heap"])
def test_a_crash_in_a_call_is_one_fault_that_names_the_call(cells: dict[str, Cell], name: str) -> None:
    (failure,) = cells[name].failures
    assert failure.case == "sample 1, size 16 as 0"


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_side_effect_outside_of_calls_is_found_and_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPWRIGHT_MISBEHAVIOR", name)
    kind, case, got, expected = LIBRARIES[name]
    cells = checked("library")
    (failure,) = cells["scaled"].failures
    assert (failure.kind, failure.case, failure.got, failure.expected) == (kind, case, got, expected)


def test_a_late_result_is_neither_a_race_nor_state(cells: dict[str, Cell]) -> None:
    kinds = {failure.kind for failure in cells["writes_later"].failures}
    # The thread that writes the result keeps running, which is also reported.
    assert kinds - {Kind.PROCESS_STATE} == {Kind.LATE}
