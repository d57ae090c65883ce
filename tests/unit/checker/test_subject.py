"""Properties of the operator under check that no other test of the checker covers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.unit.checker.conftest import MakeSubject

REFERENCE = """
runs = []

@library.op
def f(x: Tensor, p: float) -> Tensor:
    runs.append(p)
    if p < 0:
        raise ValueError("p must be 0 or more")
    return torch.nn.functional.dropout(x, p)

@f.samples
def _(make):
    yield make.call(torch.ones(4), {p})
"""


@pytest.mark.parametrize(("p", "draws"), [(0.5, True), (0.0, False), (-1.0, False)])
def test_the_reference_runs_once_to_detect_random_numbers(make_subject: MakeSubject, p: float, *, draws: bool) -> None:
    subject = make_subject(REFERENCE.replace("{p}", str(p)), quick=True)
    (sample,) = subject.samples
    runs: list[float] = subject.op.reference.__globals__["runs"]
    runs.clear()
    assert [subject.draws_random_numbers(sample) for _ in range(3)] == [draws] * 3
    assert runs == [p]
