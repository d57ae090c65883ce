"""Operators for tests of cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from opwright.spec import derive
from tests.unit.checker.conftest import MakeSubject, operator

if TYPE_CHECKING:
    from opwright.checker.cases.case import Case, Family
    from opwright.checker.subject import Subject

ASKED = """
@library.op
def asked(x: Tensor, y: Tensor, n: int) -> Tensor:
    return x @ y

@asked.samples(dtypes=(torch.float64, torch.bfloat16))
def _(make):
    n = make.size(6)
    m = make.size(3)
    assert n != 9, "this function does not support 9"
    yield make.randn(n, 2 * n), make.randn(2 * n, m), n
    yield make.randn(n, n), make.randn(n, 50), n
    yield make.randn(100, 100), make.randn(100, 100), 100
"""
WRITTEN = operator(
    "x: Tensor, index: Tensor",
    "x[index]",
    "make.randn(12, 5), make.randint(0, 2, 5)",
    "make.randn(70, 5), make.randint(0, 2, 70)",
)
SMALLEST_LAST = operator("x: Tensor", "2 * x", "make.randn(12, 5)", "make.randn(3, 4)")


@pytest.fixture(scope="module")
def asked(make_subject: MakeSubject) -> Subject:
    return make_subject(ASKED)


@pytest.fixture(scope="module")
def written(make_subject: MakeSubject) -> Subject:
    return make_subject(WRITTEN)


def of(subject: Subject, *families: Family) -> dict[str, Case]:
    return {case.name: case for case in subject.varied if case.family in families}


def shapes(case: Case) -> list[tuple[int, ...]]:
    return [tuple(tensor.shape) for tensor in derive.tensors(case.arguments)]
