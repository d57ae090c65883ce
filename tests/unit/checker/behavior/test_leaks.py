"""Operators that exist in Python alone, and keep memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opwright.checker.behavior.leaks import check_memory_growth
from opwright.checker.kinds import Kind

if TYPE_CHECKING:
    from tests.unit.checker.behavior.conftest import RunChecks
    from tests.unit.checker.conftest import MakeSubject

SAMPLES = """
@f.samples
def _(make):
    yield make.randn(40)
"""
RIGHT = "@library.op\ndef f(x: Tensor) -> Tensor:\n    return x + 1\n"
KEEPS = """
kept = []
@library.op
def f(x: Tensor) -> Tensor:
    kept.append(torch.zeros(50))
    return x + 1
"""


def test_an_operator_that_keeps_nothing_passes(make_subject: MakeSubject, failures: RunChecks) -> None:
    assert failures(make_subject(RIGHT + SAMPLES, quick=True), check_memory_growth) == ()


def test_memory_that_is_kept_is_a_leak_and_its_size_is_reported(make_subject: MakeSubject, failures: RunChecks) -> None:
    (failure,) = failures(make_subject(KEEPS + SAMPLES, quick=True), check_memory_growth)
    assert failure.kind is Kind.LEAK
    grown = int(failure.got.split()[0])
    assert 200 <= grown < 1000  # the numbers, and what holds them
