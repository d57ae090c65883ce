"""Tests of Python-only operators that depend on the thread or the number of threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from opwright.checker.behavior.thread_count import threads
from opwright.checker.behavior.threads import check_threads
from opwright.checker.kinds import Kind
from tests.unit.checker.behavior.conftest import NOT_A_NUMBER, RunChecks
from tests.unit.checker.conftest import RIGHT, SAMPLES, MakeSubject

BY_THREADS = """
@library.op
def f(x: Tensor) -> Tensor:
    return x + torch.get_num_threads()
"""
# Off by a thousandth with one thread and by two with several; the reference in float32 is no more accurate.
ROUNDED_BY_THREADS = """
@library.op
def f(x: Tensor) -> Tensor:
    error = 0.0 if x.dtype == torch.float64 else 0.001
    return x + error * (1 if torch.get_num_threads() == 1 else 2)
"""
# A new thread sums in reverse order, like a BLAS with another number of threads: the bits differ, but both are right.
OTHER_ORDER_IN_A_NEW_THREAD = """
import threading
home = threading.get_ident()
@library.op
def f(x: Tensor) -> Tensor:
    total = sum((x if threading.get_ident() == home else x.flip(0)).unbind())
    return total.reshape(1)
"""
WRONG_IN_A_NEW_THREAD = OTHER_ORDER_IN_A_NEW_THREAD.replace(
    "total.reshape(1)", "total.reshape(1) + (0 if threading.get_ident() == home else 1e-3)"
)
RAISES_WITH_ONE_THREAD = """
@library.op
def f(x: Tensor) -> Tensor:
    if torch.get_num_threads() == 1:
        raise ValueError("too few threads")
    return x + 1
"""
RAISES_WITH_SEVERAL_THREADS = RAISES_WITH_ONE_THREAD.replace("== 1", "> 1").replace("few", "many")
SHARED = """
shared = {}
@library.op
def f(x: Tensor) -> Tensor:
    shared["x"] = x
    time.sleep(0.001)
    return shared["x"] + 0
"""
RAISES_TOGETHER = """
inside = []
@library.op
def f(x: Tensor) -> Tensor:
    inside.append(1)
    time.sleep(0.001)
    if len(inside) > 1:
        inside.clear()
        raise ValueError("another call is running")
    inside.clear()
    return x + 0
"""
WIDER_TOGETHER = """
inside = []
@library.op
def f(x: Tensor) -> Tensor:
    inside.append(1)
    time.sleep(0.001)
    alone = len(inside) == 1
    inside.clear()
    return x + 0 if alone else x.double()
"""


@pytest.mark.parametrize("reference", [RIGHT, NOT_A_NUMBER])
def test_an_operator_that_shares_nothing_passes(make_subject: MakeSubject, failures: RunChecks, reference: str) -> None:
    assert failures(make_subject(reference + SAMPLES, quick=True), check_threads) == ()


@pytest.mark.parametrize(
    ("reference", "kind", "got"),
    [
        (BY_THREADS, Kind.THREADS, "with 4 threads, 20 of 20 times: float32 (40,), at [0]: "),
        # Here all callers also share the judge, so the first fault found varies.
        (SHARED, Kind.RACE, ""),
        (WRONG_IN_A_NEW_THREAD, Kind.RACE, ""),
        (RAISES_TOGETHER, Kind.RACE, "ValueError: another call is running"),
        (WIDER_TOGETHER, Kind.RACE, "float64 (40,)"),
    ],
)
def test_a_dependence_on_threads_is_named(
    make_subject: MakeSubject, failures: RunChecks, reference: str, kind: Kind, got: str
) -> None:
    (failure,) = failures(make_subject(reference + SAMPLES, quick=True), check_threads)
    assert failure.kind is kind
    assert failure.got.startswith(got)
    assert "torch.ops.described_" in failure.repro


@pytest.mark.parametrize(
    ("reference", "got", "expected"),
    [
        (RAISES_WITH_ONE_THREAD, "with 1 thread: ValueError: too few threads", "a result, as with {} threads"),
        (
            RAISES_WITH_SEVERAL_THREADS,
            "with {} threads, 20 of 20 times: ValueError: too many threads",
            "the result of one thread",
        ),
    ],
)
def test_an_error_at_some_thread_counts_is_a_fault(
    make_subject: MakeSubject, failures: RunChecks, reference: str, got: str, expected: str
) -> None:
    several = max(torch.get_num_threads(), 4)
    first, *_ = failures(make_subject(reference + SAMPLES, quick=True), check_threads)
    assert (first.kind, first.got, first.expected) == (Kind.THREADS, got.format(several), expected.format(several))
    threads_line, call = first.repro.splitlines()[-2:]
    assert threads_line == f"torch.set_num_threads({1 if 'few' in got else several})"
    assert call.startswith("torch.ops.described_")


def test_an_error_at_every_thread_count_is_left_to_other_checks(make_subject: MakeSubject, failures: RunChecks) -> None:
    subject = make_subject(RAISES_WITH_ONE_THREAD.replace("== 1", "> 0") + SAMPLES, quick=True)
    assert failures(subject, check_threads) == ()


def test_rounding_may_differ_between_thread_counts_within_the_tolerance(
    make_subject: MakeSubject, failures: RunChecks
) -> None:
    subject = make_subject(ROUNDED_BY_THREADS + SAMPLES, quick=True)
    assert failures(subject, check_threads) == ()


def test_a_different_order_of_sums_in_a_new_thread_is_not_a_race(
    make_subject: MakeSubject, failures: RunChecks
) -> None:
    subject = make_subject(OTHER_ORDER_IN_A_NEW_THREAD + SAMPLES, quick=True)
    (case,) = subject.samples

    with ThreadPoolExecutor(1) as pool:
        (there,) = pool.submit(subject.call, case.fresh()).result()
    (here,) = subject.call(case.fresh())
    torch.testing.assert_close(here, there)
    assert not torch.equal(here, there)
    assert failures(subject, check_threads) == ()


def test_no_thread_counts_are_tried_without_threads_of_pytorch(make_subject: MakeSubject, failures: RunChecks) -> None:
    subject = make_subject(BY_THREADS + SAMPLES, quick=True)
    object.__setattr__(subject.options, "alone", True)
    assert failures(subject, check_threads) == ()


def test_the_number_of_threads_is_restored(make_subject: MakeSubject, failures: RunChecks) -> None:
    before = torch.get_num_threads()
    failures(make_subject(BY_THREADS + SAMPLES, quick=True), check_threads)
    with threads(1):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before
