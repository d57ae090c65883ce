"""The faults that eager mode and autograd find in operators that exist only in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from opwright.checker.behavior import leaks
from opwright.checker.behavior.untracked import untracked
from opwright.checker.kinds import Kind
from opwright.checker.recorder import Recorder
from opwright.checker.runtimes import autograd, eager
from tests.unit.checker.conftest import SAMPLES, MakeSubject

if TYPE_CHECKING:
    from opwright.checker.subject import Subject
    from opwright.checker.verdict import Cell

RIGHT = "@library.op\ndef f(x: Tensor) -> Tensor:\n    return x * x.sin()\n"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaks, "_SECONDS", 0.1)


def cell(subject: Subject, runtime: Any, *died_of: str) -> Cell:
    assert runtime.why_not(subject) == ""
    recorder = Recorder("f", runtime.NAME, "cpu", lambda event: None, frozenset(died_of))
    runtime.run(subject, recorder)
    return recorder.cell()


@pytest.fixture(scope="module")
def whole(make_subject: MakeSubject) -> Cell:
    """The cell of a correct operator in eager mode, which takes seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leaks, "_SECONDS", 0.1)
        return cell(make_subject(RIGHT + SAMPLES, quick=True), eager)


def test_a_correct_operator_passes(whole: Cell, make_subject: MakeSubject) -> None:
    for passed in (whole, cell(make_subject(RIGHT + SAMPLES, quick=True), autograd)):
        assert passed.failures == ()
        assert passed.cases > 5


def test_a_call_that_writes_to_its_argument_is_not_repeated_in_read_only_memory(make_subject: MakeSubject) -> None:
    text = "@library.op\ndef f(x: Tensor) -> Tensor:\n    x.add_(1)\n    return x.clone()\n"
    found = {failure.kind: failure for failure in cell(make_subject(text + SAMPLES, quick=True), eager).failures}
    assert found[Kind.WRITES_INPUT].got == "the call changed x"
    assert found[Kind.WRITES_INPUT].case == "sample 1"


def test_after_a_crash_its_case_two_variations_and_threads_are_skipped(whole: Cell, make_subject: MakeSubject) -> None:
    subject = make_subject(RIGHT + SAMPLES, quick=True)
    (asked,) = [case for case in subject.varied if case.name == "sample 1, size 40 as 17"]
    rest = cell(subject, eager, asked.name)
    # Variations of a case that crashes would only crash again.
    # A crash with several threads would not show that they interfere: two steps for each of two calls.
    assert rest.cases == whole.cases - 1 - len(list(subject.pairs())) - 4


def test_notes_explain_what_could_not_be_tried(make_subject: MakeSubject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opwright.checker.cases.large.bytes_free", lambda device: 0)
    monkeypatch.setattr(leaks, "bytes_in_use", lambda: None)
    noted = cell(make_subject(RIGHT + SAMPLES, quick=True, large=True), eager)
    assert noted.status == "passed"
    assert noted.reason.startswith("no call with more than 2^31 bytes was tried: it needs 12.0 GiB of memory, 0.0 GiB")
    assert "memory growth was not checked" in noted.reason


SUBSET = """
@library.op(differentiable=("x",))
def f(x: Tensor, y: Tensor) -> Tensor:
    return x * y

@f.samples
def _(make):
    yield make.randn(40), make.randn(40)
"""


def test_a_backward_that_raises_is_found(make_subject: MakeSubject) -> None:
    text = f"""{RIGHT}
@f.backward(saves=("x",))
def f_backward(grad: Tensor, x: Tensor) -> Tensor:
    raise ValueError("none")
"""
    (failure,) = cell(make_subject(text + SAMPLES, quick=True), autograd).failures
    assert failure.kind is Kind.RAISES
    assert failure.got == "ValueError: none"


def test_gradients_that_round_differently_in_each_call_are_correct(make_subject: MakeSubject) -> None:
    text = """
calls = []
@library.op
def f(x: Tensor) -> Tensor:
    calls.append(1)
    return x * (1 + (0.0 if x.dtype == torch.float64 else 0.001 * (1 + len(calls) % 2)))
"""
    assert cell(make_subject(text + SAMPLES, quick=True), autograd).failures == ()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (RIGHT.replace("x * x.sin()", "x > 0"), "no sample has floating-point inputs and outputs"),
        (
            RIGHT.replace(".op", ".op(mutates=('x',))").replace("return x * x.sin()", "return x.sin_() * 1"),
            "it mutates x",
        ),
        (
            RIGHT.replace(".op", ".op(differentiable=())"),
            "op.py declares that it has no gradient: differentiable=()",
        ),
    ],
)
def test_autograd_reports_why_it_does_not_apply(make_subject: MakeSubject, text: str, reason: str) -> None:
    assert autograd.why_not(make_subject(text + SAMPLES, quick=True)).startswith(reason)


def test_autograd_does_not_apply_if_no_sample_has_a_declared_gradient(make_subject: MakeSubject) -> None:
    text = SUBSET.replace("make.randn(40), make", "make.randint(0, 9, 40), make")
    reason = autograd.why_not(make_subject(text, quick=True))
    assert reason == "no sample has a floating-point tensor where op.py declares a gradient: x"


def test_a_reference_that_autograd_cannot_track_is_a_fault_if_the_gradient_is_derived_from_it(
    make_subject: MakeSubject,
) -> None:
    body = "def f(x: Tensor) -> Tensor:\n    return torch.from_numpy(x.detach().numpy() * 2)\n"
    (fault,) = cell(make_subject(f"@library.op\n{body}{SAMPLES}", quick=True), autograd).failures
    assert fault.kind is Kind.REFERENCE
    assert fault.expected.startswith("a reference that autograd can track, a native backward")


def test_only_declared_gradients_are_compared(make_subject: MakeSubject) -> None:
    passed = cell(make_subject(SUBSET, quick=True), autograd)
    assert passed.failures == ()
    assert passed.reason == "no gradient for y: op.py does not declare it as differentiable"
    wrong = "\n@f.backward(saves=('x',))\ndef f_backward(grad: Tensor, x: Tensor) -> Tensor:\n    return grad * x\n"
    (failure,) = cell(make_subject(SUBSET + wrong, quick=True), autograd).failures
    assert failure.got.startswith("the gradient of x that the reference of f_backward returns: ")


WITHOUT_DERIVATIVE = """
def cube(x):
    assert x.dtype == torch.float32
    with {below}:
        return x**3

other = torch.library.Library("without_derivative_{number}", "DEF")
other.define("cube(Tensor x) -> Tensor")
other.impl("cube", cube, "CPU")
other.impl("cube", torch.empty_like, "Meta")

@library.op
def f(x: Tensor) -> Tensor:
    return torch.ops.without_derivative_{number}.cube(x)

@f.oracle
def _(x):
    return x**3
"""


@pytest.mark.parametrize(
    ("number", "below"), [(0, "torch._C._AutoDispatchBelowAutograd()"), (1, "torch.enable_grad()")]
)
def test_a_reference_whose_gradient_silently_disappears_is_a_fault(
    make_subject: MakeSubject, number: int, below: str
) -> None:
    text = WITHOUT_DERIVATIVE.format(number=number, below=below)
    (fault,) = cell(make_subject(text + SAMPLES, quick=True), autograd).failures
    assert fault.kind is Kind.REFERENCE
    assert fault.got.startswith("the reference depends on x, but the graph of its results does not contain x: ")
    assert fault.expected.startswith("a reference in plain PyTorch")
    assert "differentiable=() if there is no gradient" in fault.expected


@pytest.mark.parametrize(
    "body", ["x.detach() * y", "torch.nn.functional.normalize(x.detach(), dim=0) + y", "x.data.sum() + y"]
)
def test_each_argument_whose_gradient_disappears_is_named(make_subject: MakeSubject, body: str) -> None:
    text = f"@library.op\ndef f(x: Tensor, y: Tensor) -> Tensor:\n    return {body}\n"
    samples = SAMPLES.replace("make.randn(40)", "make.randn(40), make.randn(40)")
    (fault,) = cell(make_subject(text + samples, quick=True), autograd).failures
    assert fault.got.startswith("the reference depends on x, but")
    assert "differentiable=('y',) if" in fault.expected


@pytest.mark.parametrize(
    "body",
    [
        "(x > 0).to(x.dtype)",
        "x.round()",
        "(x * 9).long().sum().to(x.dtype)",
        "torch.zeros_like(x)",
    ],
)
def test_a_piecewise_constant_reference_has_a_gradient_of_zero(make_subject: MakeSubject, body: str) -> None:
    subject = make_subject(f"@library.op\ndef f(x: Tensor) -> Tensor:\n    return {body}\n{SAMPLES}", quick=True)
    assert untracked(subject.op, subject.samples[0].fresh, ["x"]) == []
