"""Tests of Python-only operators that keep state between calls."""

from __future__ import annotations

import pytest
import torch

from opwright.checker.behavior.repetition import check_repetition
from opwright.checker.kinds import Kind
from tests.unit.checker.behavior.conftest import NOT_A_NUMBER, RunChecks
from tests.unit.checker.conftest import RIGHT, SAMPLES, MakeSubject

COUNTS_CALLS = """
calls = []
@library.op
def f(x: Tensor) -> Tensor:
    calls.append(1)
    return x + len(calls)
"""
RAISES_LATER = """
calls = []
@library.op
def f(x: Tensor) -> Tensor:
    calls.append(1)
    if len(calls) > 50:
        raise ValueError("used up")
    return x + 1
"""
ONE_BUFFER = """
buffer = torch.empty(40)
@library.op
def f(x: Tensor) -> Tensor:
    return buffer.copy_(x)
"""
RING_OF_BUFFERS = """
buffers = [torch.empty(40) for _ in range(8)]
@library.op
def f(x: Tensor) -> Tensor:
    buffers.append(buffers.pop(0))
    return buffers[-1].copy_(x)
"""
INFINITE_LATER = """
calls = []
@library.op
def f(x: Tensor) -> Tensor:
    calls.append(1)
    return x * 0 + (torch.finfo(x.dtype).max if len(calls) < 50 else float("inf"))
"""
# Like an atomic addition, each call rounds differently.
ROUNDED_DIFFERENTLY = """
calls = []
@library.op
def f(x: Tensor) -> Tensor:
    calls.append(1)
    return sum((x if len(calls) % 2 else x.flip(0)).unbind()).reshape(1)
"""


@pytest.mark.parametrize("reference", [RIGHT, NOT_A_NUMBER])
def test_an_operator_without_state_passes(make_subject: MakeSubject, failures: RunChecks, reference: str) -> None:
    assert failures(make_subject(reference + SAMPLES, quick=True), check_repetition) == ()


@pytest.mark.parametrize(
    ("reference", "got"),
    [
        (COUNTS_CALLS, "the second time: float32 (40,), at [0]: "),
        (RAISES_LATER, "ValueError: used up"),
        (ONE_BUFFER, "after another call, the first result changed to "),
        (RING_OF_BUFFERS, "after 8 other calls, the first result changed to "),
        (INFINITE_LATER, "the second time: float32 (40,), at [0]: inf"),
    ],
)
def test_state_between_calls_is_named(make_subject: MakeSubject, failures: RunChecks, reference: str, got: str) -> None:
    (failure,) = failures(make_subject(reference + SAMPLES, quick=True), check_repetition)
    assert failure.kind is Kind.STATE
    assert failure.got.startswith(got)
    assert "torch.ops.described_" in failure.repro


def test_a_different_order_of_sums_in_each_call_is_not_state(make_subject: MakeSubject, failures: RunChecks) -> None:
    subject = make_subject(ROUNDED_DIFFERENTLY + SAMPLES, quick=True)
    (case,) = subject.samples
    (first,), (second,) = subject.call(case.fresh()), subject.call(case.fresh())
    torch.testing.assert_close(first, second)
    assert not torch.equal(first, second)
    assert failures(subject, check_repetition) == ()
