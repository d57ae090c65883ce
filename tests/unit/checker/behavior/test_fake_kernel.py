"""How a check compares fake kernels with the real ones, where sizes depend on values."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from opwright.checker.behavior.fake_kernel import check_fake
from opwright.checker.kinds import Kind
from opwright.checker.recorder import Recorder
from opwright.checker.steps import Steps

if TYPE_CHECKING:
    from opwright.checker.verdict import Failure
    from tests.unit.checker.conftest import MakeSubject

OPERATOR = """
@library.op
def f(x: Tensor) -> tuple[Tensor, Tensor]:
    chosen = x[x > 0]
    return chosen, torch.stack((chosen, -chosen)){layout}

@f.samples
def _(make):
    yield make.randn(40)
"""
FAKE = """
@f.fake
def _(x):
    count = torch.library.get_ctx().new_dynamic_size({bounds})
    return x.new_empty({sizes}), x.new_empty({rows}){layout}
"""


def faults(subject_text: str, make_subject: MakeSubject) -> tuple[Failure, ...]:
    recorder = Recorder("f", "compile", "cpu", lambda event: None)
    check_fake(Steps(make_subject(subject_text, quick=True), recorder))
    assert recorder.failed or recorder.cell().cases > 5
    return recorder.cell().failures


def fake(bounds: str = "", sizes: str = "count", rows: str = "2, count", layout: str = "") -> str:
    return FAKE.format(bounds=bounds, sizes=sizes, rows=rows, layout=layout)


@pytest.mark.parametrize("text", ["", fake(), fake("max=10**6")])
def test_a_size_that_depends_on_values_may_be_left_open(make_subject: MakeSubject, text: str) -> None:
    assert faults(OPERATOR.format(layout="") + text, make_subject) == ()


@pytest.mark.parametrize(
    ("text", "got"),
    [
        (fake(sizes="count, 1"), "result 0 of the fake kernel: float32 (u0, 1)"),
        (fake("max=4"), "result 0 of the fake kernel: float32 (u0,), with u0 = "),
        (fake(sizes="count + 1"), "result 0 of the fake kernel: float32 (u0 + 1,), with u0 = "),
        (fake(rows="2, 2 * count"), "result 1 of the fake kernel: float32 (2, 2*u0), with u0 = "),
    ],
)
def test_an_open_size_that_does_not_fit_is_found(make_subject: MakeSubject, text: str, got: str) -> None:
    (fault,) = faults(OPERATOR.format(layout="") + text, make_subject)
    assert fault.kind is Kind.FAKE_SHAPE
    assert fault.got.startswith(got)


def test_strides_over_an_open_size_are_compared(make_subject: MakeSubject) -> None:
    transposed = OPERATOR.format(layout=".t().contiguous().t()")
    assert faults(transposed + fake(rows="count, 2", layout=".t()"), make_subject) == ()
    (fault,) = faults(transposed + fake(), make_subject)
    assert fault.kind is Kind.FAKE_STRIDES
    assert re.match(r"result 1 of the fake kernel: strides \(.*u0.*, 1\), with u0 = \d+$", fault.got)
