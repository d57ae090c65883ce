from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
import torch

from opwright.checker.cases.case import Case, Family
from opwright.checker.cases.samples import constants, samples
from opwright.errors import SpecError
from tests.unit.checker.conftest import RIGHT, MakeSubject

if TYPE_CHECKING:
    from opwright.checker.subject import Subject


def test_samples_are_numbered_and_claimed(asked: Subject) -> None:
    assert [case.name for case in asked.samples] == ["sample 1", "sample 2", "sample 3"]
    assert all(case.claimed and case.family is Family.SAMPLE for case in asked.samples)


DRAWN_ELSEWHERE = """
import random
import numpy

@library.op
def f(x: Tensor, y: Tensor, scale: float) -> Tensor:
    return x * scale

@f.samples
def _(make):
    yield torch.randn(3), torch.from_numpy(numpy.random.rand(3)), random.uniform(0, 1)
"""


def test_samples_from_any_seeded_generator_are_reproducible_and_restore_its_state(make_subject: MakeSubject) -> None:
    op = make_subject(DRAWN_ELSEWHERE).op
    before = random.getstate(), torch.get_rng_state()
    (first,), (again,), (other,) = (samples(op, "cpu", seed) for seed in (1, 1, 2))
    assert excerpt_of(first) == excerpt_of(again)
    assert not set(excerpt_of(first)) & set(excerpt_of(other))
    assert random.getstate() == before[0]
    assert torch.equal(torch.get_rng_state(), before[1])


def test_calls_that_differ_only_in_tensor_values_have_the_same_constants() -> None:
    def of(x: torch.Tensor, scale: float) -> list[Any]:
        return constants(Case("sample 1", Family.SAMPLE, {"x": x, "scale": scale}))

    assert of(torch.ones(3), 2.0) == of(torch.zeros(3), 2.0)
    for x, scale in ((torch.ones(3), 3.0), (torch.ones(4), 2.0), (torch.ones(3).double(), 2.0)):
        assert of(x, scale) != of(torch.zeros(3), 2.0)


def excerpt_of(case: Case) -> list[float]:
    x, y, scale = case.arguments.values()
    return [*x.tolist(), *y.tolist(), scale]


def test_samples_that_yield_nothing_are_rejected(make_subject: MakeSubject) -> None:
    subject = make_subject(RIGHT + "@f.samples\ndef _(make):\n    yield from ()\n")
    with pytest.raises(SpecError, match=r"the samples of \w+::f yield nothing: yield the arguments of at least one"):
        _ = subject.samples
