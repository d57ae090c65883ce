from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from opwright.checker.cases.case import Family
from opwright.errors import SpecError

if TYPE_CHECKING:
    from opwright.checker.subject import Subject
    from tests.unit.checker.conftest import MakeSubject


NOTHING = "def _(make):\n    yield from ()\n"


def test_samples_are_numbered_and_claimed(asked: Subject) -> None:
    assert [case.name for case in asked.samples] == ["sample 1", "sample 2", "sample 3"]
    assert all(case.claimed and case.family is Family.SAMPLE for case in asked.samples)


def test_samples_that_yield_nothing_are_refused(make_subject: MakeSubject) -> None:
    subject = make_subject("@library.op\ndef none(x: Tensor) -> Tensor:\n    return x + 1\n@none.samples\n" + NOTHING)
    with pytest.raises(SpecError, match=r"the samples of \w+::none yield nothing: yield the arguments of at least one"):
        _ = subject.samples
