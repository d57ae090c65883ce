"""Tests of operators with correct results and faulty behavior: a check names what each of them does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import opwright
from opwright.checker.kinds import Kind

if TYPE_CHECKING:
    from opwright.checker.verdict import Cell

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


# Faults that are the only one of their operator, and a part of the case that shows it.
ALONE = {
    "ends_among_others": "from 4 threads at once",
    **dict.fromkeys(
        ("exits", "throws_in_a_thread", "divides_by_the_size", "corrupts_the_heap"), "sample 1, size 16 as 0"
    ),
}
# What the process printed last.
DETAILS = {"corrupts_the_heap": "free(): ", "throws_in_a_thread": "nothing to compute"}


def checked(library: str, op: str) -> Cell:
    report = opwright.check(MISBEHAVING / library, ops=[op], runtimes=["eager"], quick=True, seed=0)
    assert report.failures == ()
    (cell,) = report.cells
    return cell


def test_every_operator_has_a_row() -> None:
    assert set(opwright.open(MISBEHAVING / "calls").library.ops) == {"right", *CALLS}


def test_the_correct_operator_passes() -> None:
    cell = checked("calls", "right")
    assert (cell.status, cell.failures) == ("passed", ())


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", CALLS)
def test_a_side_effect_of_a_call_is_found_and_named(name: str) -> None:
    kind, got, expected = CALLS[name]
    cell = checked("calls", name)
    assert cell.status == "failed"
    found = {failure.kind: failure for failure in cell.failures}
    failure = found[kind]
    assert got in failure.got
    assert expected in failure.expected
    assert f"torch.ops.misbehaving.{name}(x)" in failure.repro
    if name in ALONE:
        assert len(cell.failures) == 1
        assert ALONE[name] in failure.case
    assert DETAILS.get(name, "") in failure.detail
    if kind is Kind.LATE:  # neither a race nor state; its thread, which keeps running, is also reported
        assert found.keys() - {Kind.PROCESS_STATE} == {Kind.LATE}


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", LIBRARIES)
def test_a_side_effect_outside_of_calls_is_found_and_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPWRIGHT_MISBEHAVIOR", name)
    kind, case, got, expected = LIBRARIES[name]
    (failure,) = checked("library", "scaled").failures
    assert (failure.kind, failure.case, failure.got, failure.expected) == (kind, case, got, expected)
