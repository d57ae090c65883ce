"""Tests of calls that the author claims to raise an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from opwright.checker.behavior.errors import check_errors
from opwright.checker.kinds import Kind
from opwright.checker.recorder import Recorder
from opwright.errors import SpecError

if TYPE_CHECKING:
    from opwright.checker.verdict import Cell
    from tests.unit.checker.conftest import MakeSubject

OPERATOR = """
@library.op
def f(x: Tensor) -> Tensor:
    return 1 / x

def kernel(x):
    {kernel}
    return 1 / x

@f.samples
def _(make):
    yield make.randn(3)

@f.errors
def _(make):
    {errors}
"""
ZEROS = 'yield "must not be zero", torch.zeros(2)'


def cell(make_subject: MakeSubject, kernel: str, errors: str = ZEROS) -> Cell:
    subject = make_subject(OPERATOR.format(kernel=kernel, errors=errors), quick=True)
    subject.__dict__["overload"] = subject.op.reference.__globals__["kernel"]
    recorder = Recorder("f", "eager", "cpu", lambda event: None)
    check_errors(subject, recorder)
    return recorder.cell()


def test_the_claimed_error_passes(make_subject: MakeSubject) -> None:
    found = cell(make_subject, "if (x == 0).any(): raise RuntimeError('x must not be zero')")
    assert (found.status, found.cases) == ("passed", 1)


def test_a_call_without_the_claimed_error_is_a_fault(make_subject: MakeSubject) -> None:
    (failure,) = cell(make_subject, "pass").failures
    assert failure.kind is Kind.BAD_INPUT
    assert failure.got == "float32 (2,)"
    assert failure.expected == "an error with 'must not be zero' in its message"
    assert "x = torch.tensor([0.0, 0.0])" in failure.repro


def test_a_different_message_is_a_fault(make_subject: MakeSubject) -> None:
    (failure,) = cell(make_subject, "if (x == 0).any(): raise RuntimeError('out of memory')").failures
    assert failure.kind is Kind.MESSAGE
    assert failure.got == "RuntimeError: out of memory"


@pytest.mark.parametrize("is_inside", ["bool((x != 0).all())", "x.shape[1] > 0"])
def test_an_error_outside_the_domain_is_a_fault_of_the_description(make_subject: MakeSubject, is_inside: str) -> None:
    domain = f"{ZEROS}\n\n@f.domain\ndef _(x):\n    return {is_inside}\n"
    with pytest.raises(SpecError, match=r"error 1 of \w+::f is outside its domain: .*\. Change the call or the domain"):
        cell(make_subject, "pass", domain)


@pytest.mark.parametrize(
    "errors", ["yield torch.zeros(2)", "yield torch.zeros(2), 'zero'", "yield 'a', 'b', 'c'", "pass"]
)
def test_anything_but_a_message_and_a_call_is_an_error_in_op_py(make_subject: MakeSubject, errors: str) -> None:
    with pytest.raises(SpecError, match=r"the errors of \w+::f must be a generator of messages and calls: write"):
        cell(make_subject, "pass", errors)
