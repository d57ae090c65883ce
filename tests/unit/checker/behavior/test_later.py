"""Tests of results some time after the call, in reused memory, and after many calls."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING

import pytest
import torch

from opwright.checker.behavior.later import check_finality, check_later
from opwright.checker.kinds import Kind
from tests.unit.checker.conftest import MakeSubject, operator

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject
    from opwright.checker.verdict import Failure
    from tests.unit.checker.behavior.conftest import RunChecks

PICKED = operator("x: Tensor, index: Tensor", "x[index] + 1", "make.randn(40), make.randint(0, 40, 9)")


@pytest.fixture(autouse=True)
def _no_time_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop the clock, so that a slow machine also makes all calls."""
    monkeypatch.setattr(time, "process_time", lambda: 0.0)
    monkeypatch.setattr(time, "monotonic", lambda: 0.0)
    monkeypatch.setattr(time, "sleep", lambda _: None)


def right(x: Tensor, index: Tensor) -> Tensor:
    return x[index] + 1


def faults(
    make_subject: MakeSubject, failures: RunChecks, overload: Callable[[Tensor, Tensor], Tensor]
) -> tuple[Failure, ...]:
    subject: Subject = make_subject(PICKED, quick=True)
    subject.overload = overload
    return failures(subject, check_final_samples, check_later)


def check_final_samples(subject: Subject, recorder: Recorder) -> None:
    check_finality(subject, recorder, subject.samples)


def test_a_correct_operator_has_no_fault(make_subject: MakeSubject, failures: RunChecks) -> None:
    assert faults(make_subject, failures, right) == ()


def test_a_result_that_changes_after_the_call_is_late(
    make_subject: MakeSubject, failures: RunChecks, monkeypatch: pytest.MonkeyPatch
) -> None:
    results: list[Tensor] = []

    def kept(x: Tensor, index: Tensor) -> Tensor:
        results.append(right(x, index))
        return results[-1]

    def change(seconds: float) -> None:
        assert seconds == 0.25
        results[-1][3] = 100

    monkeypatch.setattr(time, "sleep", change)
    (failure,) = faults(make_subject, failures, kept)
    assert (failure.kind, failure.case) == (Kind.LATE, "sample 1")
    assert failure.got.startswith(
        "0.25 s after the call returned, the result has changed to float32 (9,), at [3]: 100.0"
    )
    assert failure.expected == "the values that it had when the call returned"


def test_nan_that_stays_nan_is_not_late(make_subject: MakeSubject, failures: RunChecks) -> None:
    found = faults(make_subject, failures, lambda x, index: right(x, index) * float("nan"))
    assert Kind.LATE not in {failure.kind for failure in found}


def test_a_result_cached_by_address_and_a_few_values_is_found(make_subject: MakeSubject, failures: RunChecks) -> None:
    known: dict[tuple[int, float, float], Tensor] = {}

    def remembered(x: Tensor, index: Tensor) -> Tensor:
        return known.setdefault((x.data_ptr(), float(x[0]), float(x[20])), right(x, index)).clone()

    (failure,) = faults(make_subject, failures, remembered)
    assert (failure.kind, failure.case) == (Kind.STATE, "sample 1")
    assert failure.got.startswith("call number ")
    assert failure.repro.startswith("# repeatedly, each time with one value changed in the same memory:\nimport ")


def test_calls_in_the_same_memory_change_one_value_of_a_tensor_and_keep_integers_valid(
    make_subject: MakeSubject, failures: RunChecks
) -> None:
    seen: list[tuple[int, Tensor, Tensor]] = []

    def watched(x: Tensor, index: Tensor) -> Tensor:
        seen.append((x.data_ptr(), x.clone(), index.clone()))
        return right(x, index)

    assert faults(make_subject, failures, watched) == ()
    in_same_memory = seen[1:13]  # the first call is that of check_finality
    assert len({address for address, _, _ in in_same_memory}) == 1
    for (_, x, index), (_, next_x, next_index) in itertools.pairwise(in_same_memory):
        assert 1 <= int((x != next_x).sum()) <= 2
        assert torch.equal(index.sort().values, next_index.sort().values)


def test_an_operator_that_stops_computing_after_many_calls_is_found(
    make_subject: MakeSubject, failures: RunChecks
) -> None:
    calls: list[int] = []

    def idle_later(x: Tensor, index: Tensor) -> Tensor:
        calls.append(1)
        return right(x, index) * (len(calls) < 1000)

    (failure,) = faults(make_subject, failures, idle_later)
    assert (failure.kind, failure.case) == (Kind.STATE, "sample 1")
    number = int(failure.got.removeprefix("after ").partition(" calls: float32 (9,), at [0]: 0.0; 9 of 9")[0])
    assert 900 < number <= len(calls) < 1300
    assert failure.repro.startswith("# repeatedly:\nimport ")


def test_a_call_that_is_wrong_for_other_values_is_not_state(make_subject: MakeSubject, failures: RunChecks) -> None:
    largest: list[float] = []

    def wrong_at_larger_numbers(x: Tensor, index: Tensor) -> Tensor:
        largest[:] = largest or [float(x.abs().max())]
        return right(x, index) * (float(x.abs().max()) <= 1.2 * largest[0])

    found = faults(make_subject, failures, wrong_at_larger_numbers)
    assert [failure.kind for failure in found] == [Kind.WRONG_RESULT]
    assert found[0].case.startswith("sample 1 with other values")


def test_a_call_that_is_wrong_by_itself_is_left_to_other_steps(make_subject: MakeSubject, failures: RunChecks) -> None:
    found = faults(make_subject, failures, lambda x, index: right(x, index) + (float(x[0]) > -1e9))
    assert all(not failure.got.startswith("call number") for failure in found)


def test_an_operator_that_always_raises_is_left_to_other_steps(make_subject: MakeSubject, failures: RunChecks) -> None:
    def raises(x: Tensor, index: Tensor) -> Tensor:
        msg = f"no kernel for {x.dtype} and {index.dtype}"
        raise NotImplementedError(msg)

    assert faults(make_subject, failures, raises) == ()


def test_an_operator_that_raises_after_many_calls_is_found(make_subject: MakeSubject, failures: RunChecks) -> None:
    calls: list[int] = []

    def raises_later(x: Tensor, index: Tensor) -> Tensor:
        calls.append(1)
        if len(calls) > 500:
            msg = "used up"
            raise ValueError(msg)
        return right(x, index)

    (failure,) = faults(make_subject, failures, raises_later)
    assert failure.kind is Kind.STATE
    assert failure.got == "after 484 calls: ValueError: used up"
    assert failure.expected == "a result, as from earlier calls"


def test_calls_that_wait_stop_the_loop_without_a_fault(
    make_subject: MakeSubject, failures: RunChecks, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []

    def counted(x: Tensor, index: Tensor) -> Tensor:
        calls.append(1)
        return right(x, index)

    monkeypatch.setattr(time, "monotonic", lambda: float(len(calls)))
    assert faults(make_subject, failures, counted) == ()
    assert 60 < len(calls) < 120
