"""Tests of the comparison of fake kernels with real ones, including sizes that depend on values."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from opwright.checker.behavior.fake_kernel import check_fake
from opwright.checker.kinds import Kind
from opwright.checker.recorder import Recorder
from opwright.checker.steps import Steps
from tests.unit.checker.conftest import MakeSubject, recorder_of_steps

if TYPE_CHECKING:
    from opwright.checker.verdict import Failure

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
def test_a_wrong_open_size_is_found(make_subject: MakeSubject, text: str, got: str) -> None:
    (fault,) = faults(OPERATOR.format(layout="") + text, make_subject)
    assert fault.kind is Kind.FAKE_SHAPE
    assert fault.got.startswith(got)


def test_strides_that_depend_on_an_open_size_are_compared(make_subject: MakeSubject) -> None:
    transposed = OPERATOR.format(layout=".t().contiguous().t()")
    assert faults(transposed + fake(rows="count, 2", layout=".t()"), make_subject) == ()
    (fault,) = faults(transposed + fake(), make_subject)
    assert fault.kind is Kind.FAKE_STRIDES
    assert re.match(r"result 1 of the fake kernel: strides \(.*u0.*, 1\), with u0 = \d+$", fault.got)


PROMOTED = """
@library.op
def f(x: Tensor, y: Tensor, mode: str = "row") -> Tensor:
    return x.sum(-1) + y.sum(-1) if mode == "row" else x.sum() + y.sum()

@f.samples
def _(make):
    yield make.randn(4, 5), make.randn(4, 5)
"""
FAKE_OF_PROMOTED = """
@f.fake
def _(x, y, mode="row"):
    shape = {shape}
    return torch.empty(shape, dtype={dtype})
"""
RIGHT_SHAPE = "torch.broadcast_shapes(x.shape[:-1], y.shape[:-1]) if mode == 'row' else ()"
RIGHT_DTYPE = "torch.result_type(x.new_empty(()).sum(), y.new_empty(()).sum())"


@pytest.mark.parametrize(
    ("shape", "dtype", "kind"),
    [
        (RIGHT_SHAPE, "x.dtype if x.dtype.is_floating_point else y.dtype", Kind.FAKE_DTYPE),
        ("torch.broadcast_shapes(x.shape[:-1], y.shape[:-1])", RIGHT_DTYPE, Kind.FAKE_SHAPE),
        ("x.shape[:-1] if mode == 'row' else ()", RIGHT_DTYPE, Kind.FAKE_SHAPE),
    ],
)
def test_a_fake_is_compared_for_mixed_dtypes_options_and_unequal_shapes(
    make_subject: MakeSubject, shape: str, dtype: str, kind: Kind
) -> None:
    (failure,) = faults(PROMOTED + FAKE_OF_PROMOTED.format(shape=shape, dtype=dtype), make_subject)
    assert failure.kind is kind


def test_a_correct_fake_of_an_operator_that_promotes_dtypes_passes(make_subject: MakeSubject) -> None:
    assert faults(PROMOTED, make_subject) == ()


def test_dtypes_of_all_tensors_are_mixed_in_a_bounded_number_of_cases(make_subject: MakeSubject) -> None:
    recorder, quick_steps = recorder_of_steps("compile")
    check_fake(Steps(make_subject(PROMOTED, quick=True), recorder))
    assert len(quick_steps) <= 120
    recorder, steps = recorder_of_steps("compile")
    check_fake(Steps(make_subject(PROMOTED), recorder))
    mixed = [step for step in steps if re.match(r"sample 1, x in \w+, y in \w+, real and fake", step)]
    assert len(mixed) > 20
    assert any(step.count(", ") > 2 and " alone in " not in step and step not in mixed for step in steps)


def test_cases_after_one_that_crashed_are_compared(make_subject: MakeSubject) -> None:
    subject = make_subject(PROMOTED + FAKE_OF_PROMOTED.format(shape=RIGHT_SHAPE, dtype="x.dtype"), quick=True)
    died = frozenset({"two of them are enough", "strides of x"})
    recorder = Recorder("f", "compile", "cpu", lambda event: None, skip_groups=died)
    check_fake(Steps(subject, recorder))
    assert recorder.failed
