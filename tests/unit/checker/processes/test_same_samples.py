"""Samples in two processes: which differences matter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch

from opwright.checker.cases.case import Case, Family
from opwright.checker.processes.same_samples import excerpt, is_same
from opwright.checker.subject import Subject
from opwright.errors import SpecError

if TYPE_CHECKING:
    from tests.unit.checker.conftest import MakeSubject

UNSEEDED = """
@library.op
def f(x: Tensor) -> Tensor:
    return x + 1

@f.samples
def _(make):
    yield make.randn(4) + int.from_bytes(os.urandom(2), "little")
"""
X = torch.linspace(-1, 1, 6).view(2, 3)
NUMBERS = torch.arange(10**5)


def of(*arguments: Any) -> list[list[Any]]:
    return excerpt([Case("sample 1", Family.SAMPLE, dict(zip("xyz", arguments, strict=False)))])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (X, X + 1e-6),
        (X.t().contiguous().t(), X),
        (torch.tensor([1.0, torch.nan, torch.inf]), torch.tensor([1.0, torch.nan, torch.inf])),
        (X.to(torch.float8_e4m3fn), X.to(torch.float8_e4m3fn)),
        (X.to(torch.complex64), X.to(torch.complex64) + 1e-6j),
        (torch.tensor(3.0), torch.tensor(3.0)),
        (torch.empty(0, 4), torch.empty(0, 4)),
        (NUMBERS, NUMBERS.clone()),
        (float("nan"), float("nan")),
        ([X, None], [X, None]),
    ],
)
def test_the_same_numbers_within_rounding_are_the_same_sample(one: Any, other: Any) -> None:
    assert is_same(of(one, 2), of(other, 2))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (X, X + 0.1),
        (X, X.double()),
        (X, X.view(3, 2)),
        (X, X.view(3, 2).tolist()),
        (torch.tensor([1.0, torch.nan]), torch.tensor([1.0, 2.0])),
        (torch.tensor([1, 2]), torch.tensor([1, 3])),
        (NUMBERS, NUMBERS.flip(0)),
        (0.25, 0.5),
        ([X], [X, X]),
        (None, X),
    ],
)
def test_different_numbers_shapes_or_options_are_different_samples(one: Any, other: Any) -> None:
    assert not is_same(of(one, 2), of(other, 2))


def test_samples_that_differ_from_the_judges_are_an_error_in_the_description(make_subject: MakeSubject) -> None:
    subject = make_subject(UNSEEDED)

    class Other:
        """A judge in another process."""

        def has_samples(self, cases: list[Case]) -> bool:
            return is_same(excerpt(cases), excerpt(subject.samples))

    there: Any = Other()
    here = Subject(subject.op, None, "cpu", subject.options, subject.work, there)
    with pytest.raises(SpecError, match=r"the samples of \w+::f differ between processes: draw random numbers"):
        _ = here.samples
