"""Tests of Python-only operators that leak memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from opwright.checker.behavior import leaks
from opwright.checker.behavior.leaks import check_memory_growth
from opwright.checker.cases.case import Case, Family
from opwright.checker.kinds import Kind
from tests.unit.checker.conftest import RIGHT, SAMPLES, MakeSubject

if TYPE_CHECKING:
    from tests.unit.checker.behavior.conftest import RunChecks

KEEPS_AT_AN_OPTION = """
kept = []
@library.op
def f(x: Tensor, mode: str = "linear") -> Tensor:
    if mode == "nearest":
        kept.append(torch.zeros(50))
    if mode not in ("linear", "nearest"):
        raise ValueError("mode")
    return x + 1
"""
KEEPS_AND_RAISES = """
kept = []
@library.op
def f(x: Tensor) -> Tensor:
    if x.dim() != 1:
        kept.append(torch.zeros(50))
        raise ValueError("x must be a vector")
    return x + 1
"""
KEEPS = """
kept = []
@library.op
def f(x: Tensor) -> Tensor:
    kept.append(torch.zeros(50))
    return x + 1
"""


@pytest.mark.sample(of="leaks")
def test_an_operator_without_a_leak_passes(make_subject: MakeSubject, failures: RunChecks) -> None:
    assert failures(make_subject(RIGHT + SAMPLES, quick=True), check_memory_growth) == ()


@pytest.mark.sample(of="leaks")
def test_a_leak_is_reported_with_its_size(make_subject: MakeSubject, failures: RunChecks) -> None:
    (failure,) = failures(make_subject(KEEPS + SAMPLES, quick=True), check_memory_growth)
    assert failure.kind is Kind.LEAK
    grown = int(failure.got.split()[0])
    assert 200 <= grown < 1000  # the values, and the objects around them


@pytest.mark.sample(of="leaks")
@pytest.mark.parametrize("body", [KEEPS_AT_AN_OPTION, KEEPS_AND_RAISES])
def test_a_leak_in_a_variation_alone_is_found(make_subject: MakeSubject, failures: RunChecks, body: str) -> None:
    (failure,) = failures(make_subject(body + SAMPLES, quick=True), check_memory_growth)
    assert failure.kind is Kind.LEAK
    assert failure.case.startswith("sample 1, ")


def test_one_variation_of_each_group_is_called_before_the_second_of_any() -> None:
    names = ["a0", "a1", "b0", "a2", "b1"]
    cases = [Case(name, Family.OPTION, {}, argument=name[0]) for name in names]
    assert [case.name for case in leaks._by_turns(cases)] == ["a0", "b0", "a1", "b1", "a2"]
