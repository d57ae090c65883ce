"""Tests of operators under PyTorch's own test of registrations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opwright.checker.behavior.opcheck import check_with_opcheck
from opwright.checker.kinds import Kind
from tests.unit.checker.conftest import RIGHT, SAMPLES, MakeSubject

if TYPE_CHECKING:
    from tests.unit.checker.behavior.conftest import RunChecks

WRONG_FAKE = "\n@f.fake\ndef _(x):\n    return x.new_empty((3,))\n"


def test_a_correct_registration_passes(make_subject: MakeSubject, failures: RunChecks) -> None:
    assert failures(make_subject(RIGHT + SAMPLES, quick=True), check_with_opcheck) == ()


def test_an_error_of_opcheck_is_reported(make_subject: MakeSubject, failures: RunChecks) -> None:
    (failure,) = failures(make_subject(RIGHT + SAMPLES + WRONG_FAKE, quick=True), check_with_opcheck)
    assert failure.kind is Kind.OPCHECK
    assert failure.got.startswith("OpCheckError: opcheck(op, ...): test_fake")
    assert "torch.ops.described_" in failure.repro
