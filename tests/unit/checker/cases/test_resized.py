"""Tests of resizing tensors that samples make without a requested size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from opwright.checker.cases.case import Family
from opwright.checker.cases.resized import with_sizes
from tests.unit.checker.cases.conftest import shapes
from tests.unit.checker.conftest import MakeSubject, operator

if TYPE_CHECKING:
    from opwright.checker.cases.case import Case
    from opwright.checker.subject import Subject

BY_HAND = operator(
    "x: Tensor, weights: list[Tensor]",
    "(x * weights[0]).sum()",
    "torch.tensor([1.0, 2.0, 3.0]), [torch.tensor([4.0, 5.0, 6.0]), torch.ones(2, 5)]",
)


def of_size(subject: Subject, old: int) -> dict[str, Case]:
    return {case.name: case for case in subject.varied if f"dimensions of {old} as" in case.name}


def test_tensors_without_a_requested_size_are_resized_together(make_subject: MakeSubject) -> None:
    subject = make_subject(BY_HAND)
    cases = of_size(subject, 3)
    assert {shapes(case)[0][0] for case in cases.values()} == {0, 1, 2, 4, 9, 17, 33}
    for case in cases.values():
        first, second, third = shapes(case)
        assert first == second
        assert third == (2, 5)
    longer = cases["sample 1, dimensions of 3 as 4"]
    assert torch.equal(longer.arguments["x"], torch.tensor([1.0, 2.0, 3.0, 1.0]))
    assert longer.family is Family.SIZE
    assert longer.size == ("sample 1, dimensions of 3", 4)
    assert cases["sample 1, dimensions of 3 as 0"].family is Family.EMPTY
    assert {shapes(case)[2] for case in of_size(subject, 5).values()} >= {(2, 1), (2, 6)}
    assert not subject.expected(longer).refusal


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.bfloat16, torch.int64])
def test_values_repeated_often_differ_slightly_unless_all_are_integers(dtype: torch.dtype) -> None:
    given = torch.tensor([1.5, 2.0, -0.25]).to(dtype)
    made = with_sizes({"x": given}, {(0, 0): 19})["x"]
    assert made.dtype == dtype
    assert torch.equal(made[:12], given.repeat(4))
    torch.testing.assert_close(made, given.repeat(7)[:19], rtol=1e-3, atol=0)
    exact = dtype in (torch.bfloat16, torch.int64)
    assert bool((made[12:15] == given).all()) == exact
    whole = torch.tensor([2.0, 3.0, -1.0]).to(dtype)
    if not dtype.is_complex:
        assert torch.equal(with_sizes({"x": whole}, {(0, 0): 19})["x"], whole.repeat(7)[:19])


def test_a_quick_check_tries_fewer_sizes(make_subject: MakeSubject) -> None:
    assert len(of_size(make_subject(BY_HAND, quick=True), 3)) == 5


def test_sizes_that_already_vary_are_unchanged(asked: Subject, make_subject: MakeSubject) -> None:
    assert not [case.name for case in asked.varied if "dimensions of 6 as" in case.name]
    half = BY_HAND.replace("torch.tensor([1.0, 2.0, 3.0])", "make.randn(make.size(3))")
    subject = make_subject(half)
    for case in of_size(subject, 3).values():
        assert shapes(case)[0] == (3,)


def test_calls_that_the_reference_rejects_are_not_tried(make_subject: MakeSubject) -> None:
    subject = make_subject(BY_HAND.replace("(x * weights[0])", "(x[:3] * torch.ones(3))"))
    refused = {case.name: subject.expected(case).refusal for case in of_size(subject, 3).values()}
    assert refused["sample 1, dimensions of 3 as 2"]
    assert not refused["sample 1, dimensions of 3 as 9"]
