"""Tests of the faults found by calling an operator with cases, and of their kinds."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
import torch

from opwright.checker.behavior.results import check_results
from opwright.checker.cases.case import Case, Family
from opwright.checker.kinds import Kind
from opwright.checker.recorder import Recorder
from opwright.checker.verdict import Failure

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opwright.checker.subject import Subject
    from opwright.checker.verdict import Cell
    from tests.unit.checker.conftest import MakeSubject

OPERATOR = """
@library.op
def f(x: Tensor{parameters}) -> {returns}:
    {reference}

def kernel(x{parameters}):
    {kernel}

@f.samples
def _(make):
    yield {sample}
"""
SUM = "return x.sum(-1)"


@pytest.fixture
def subject(make_subject: MakeSubject) -> Any:
    """Describe an operator whose kernel differs from its reference."""

    def subject(
        reference: str, kernel: str, sample: str = "make.randn(40)", parameters: str = "", returns: str = "Tensor"
    ) -> Subject:
        text = OPERATOR.format(
            reference=reference, kernel=kernel, sample=sample, parameters=parameters, returns=returns
        )
        made = make_subject(text, quick=True)
        made.__dict__["overload"] = made.op.reference.__globals__["kernel"]
        return made

    return subject


def cell(subject: Subject, cases: Iterable[Case] | None = None) -> Cell:
    recorder = Recorder("f", "eager", "cpu", lambda event: None)
    check_results(subject, recorder, [*subject.samples, *subject.varied] if cases is None else cases)
    return recorder.cell()


def made_from(failure: Failure) -> str:
    """The case from which a failure was made smaller."""
    return failure.case.partition(", made smaller")[0]


def kinds(failures: Iterable[Failure]) -> dict[Kind, str]:
    return {failure.kind: made_from(failure) for failure in failures}


def test_a_correct_kernel_passes_samples_variations_and_pairs(subject: Any) -> None:
    kernel = "if x.is_complex(): raise ValueError\n    return torch.logaddexp(x, torch.zeros_like(x))"
    right = subject("return torch.log1p(x.exp())", kernel)
    found = cell(right, [*right.samples, *right.varied, *right.pairs()])
    assert found.failures == ()
    assert found.cases > 100


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("kernel", "kind", "case"),
    [
        ("return x * 3", Kind.WRONG_RESULT, "sample 1"),
        ("return x * 2 if x.stride(0) == 1 else x * 3", Kind.STRIDES, "sample 1, x every second element"),
        ("return x * 2 if x.storage_offset() == 0 else x * 3", Kind.OFFSET, "sample 1, x with a storage offset"),
        ("return x * 2 if x.dim() < 4 else x * 3", Kind.RANK, "sample 1, all tensors with 4 dimensions"),
        ("return (x * 1e30) * 2e-30", Kind.MAGNITUDE, "sample 1, x times 1e+10"),
        ("return x * 2 if x[0] else x * 2 + 1", Kind.EDGE_VALUES, "sample 1, x zero"),
        ("return torch.nan_to_num(x) * 2", Kind.SPECIAL_VALUES, "sample 1, x with NaN"),
        ("return x * 2 if x.shape[0] < 64 else x * 3", Kind.SIZE, "sample 1, size 40 as 64"),
        ("return (x * 2).float()", Kind.RESULT_TYPE, "sample 1 in float64"),
        ("return x * 2 if x.dtype != torch.int32 else x * 3", Kind.WRONG_DTYPE, "sample 1 in int32"),
    ],
)
def test_a_fault_is_named_by_the_variation_that_shows_it(subject: Any, kernel: str, kind: Kind, case: str) -> None:
    if kind is Kind.MAGNITUDE:
        kernel = f"if x.dtype != torch.float32: raise ValueError\n    {kernel}"
    one = subject("return x * 2", kernel)
    # All contents, because a quick check tries only some of them.
    object.__setattr__(one.options, "quick", False)
    found = kinds(cell(one).failures)
    assert kind in found
    assert found[kind] == case or kind is Kind.MAGNITUDE


def test_wrong_integers_and_options_are_named(subject: Any) -> None:
    negative = subject(
        "return x[index % 40]", "return x[index.clamp(0)]", "make.randn(40), make.randint(0, 40, 7)", ", index: Tensor"
    )
    object.__setattr__(negative.options, "quick", False)
    assert Kind.INTEGER_VALUES in kinds(cell(negative).failures)
    ignored = subject("return x * n", "return x * 2", "make.randn(40), 2", ", n: int")
    found = kinds(cell(ignored).failures)
    assert found[Kind.OPTION] == "sample 1, n=1"


def test_arguments_that_share_memory_are_named(subject: Any) -> None:
    same = "return x * y if x.data_ptr() != y.data_ptr() else x.clone()"
    one = subject("return x * y", same, "make.randn(40), make.randn(40)", ", y: Tensor")
    assert kinds(cell(one).failures) == {Kind.SHARED: "sample 1, x and y the same tensor"}


def test_equal_dimensions_that_the_kernel_confuses_are_named(subject: Any) -> None:
    one = subject(
        "return x.sum(0)", "return x.sum(0)[:x.shape[0]] if x.shape[0] < x.shape[1] else x.sum(0)", "torch.ones(6, 6)"
    )
    assert Kind.RESULT_TYPE in kinds(cell(one).failures)


@pytest.mark.parametrize(
    ("kernel", "kind"),
    [
        ("y = x * 2\n    y[x.shape[0] // 8 * 8:] = 0\n    return y", Kind.TAIL),
        ("return x * 2 if x.shape[0] == 40 else x * 3", Kind.SIZE),
    ],
    ids=["the remainder", "every element"],
)
def test_only_a_skipped_remainder_of_a_vector_loop_is_a_vector_tail(subject: Any, kernel: str, kind: Kind) -> None:
    one = subject("return x * 2", kernel)
    sizes = [case for case in one.varied if case.size is not None]
    assert kinds(cell(one, sizes).failures) == {kind: "sample 1, size 40 as 1"}


def test_a_fault_in_the_last_elements_of_a_sample_is_reported(subject: Any) -> None:
    one = subject("return x * 2", "y = x * 2\n    y[-1] = 7\n    return y")
    assert kinds(cell(one, one.samples).failures) == {Kind.TAIL: "sample 1"}


def test_a_fault_with_unequal_dimensions_or_two_sizes_is_reported(subject: Any) -> None:
    wrong = "return x.sum() * y if x.shape[0] == y.shape[0] else y.clone()"
    one = subject("return x.sum() * y", wrong, "torch.arange(5.0), torch.arange(5.0)", ", y: Tensor")
    cases = [case for case in one.varied if case.family is Family.UNEQUAL]
    assert list(kinds(cell(one, cases).failures)) == [Kind.SIZE]


def test_unwritten_elements_are_uninitialised_memory(subject: Any) -> None:
    one = subject("return x * 2", "y = torch.empty_like(x)\n    y[:9] = x[:9] * 2\n    return y")
    (failure,) = cell(one, one.samples).failures
    assert failure.kind is Kind.UNINITIALISED
    assert "with which new memory was filled" in failure.got


def test_a_result_that_is_right_with_one_thread_depends_on_threads(subject: Any) -> None:
    one = subject("return x * 2", "return x * 2 if torch.get_num_threads() == 1 else x * 3")
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        (failure,) = cell(one, one.samples).failures
    finally:
        torch.set_num_threads(before)
    assert failure.kind is Kind.THREADS
    assert failure.got.startswith("with 2 threads: ")


def test_a_result_that_is_right_when_the_call_is_repeated_is_state(subject: Any) -> None:
    for family in (Family.SAMPLE, Family.STRIDES):
        kernel = "calls.append(1)\n    return x * 2 if len(calls) > 1 else x * 3"
        one = subject("return x * 2", kernel)
        one.op.reference.__globals__["calls"] = []
        case = next(case for case in [*one.samples, *one.varied] if case.family is family)
        (failure,) = cell(one, [case]).failures
        assert failure.kind is Kind.STATE
        assert failure.got.endswith(", and other values when the call is repeated")


@pytest.mark.parametrize("later", [2.0, 5.0])
def test_a_wrong_result_that_changes_after_the_call_is_late_whatever_it_becomes(
    subject: Any, monkeypatch: pytest.MonkeyPatch, later: float
) -> None:
    one = subject("return x * 2", "calls.append((x, x * 3))\n    return calls[-1][1]")
    calls = one.op.reference.__globals__.setdefault("calls", [])
    monkeypatch.setattr(time, "sleep", lambda seconds: torch.mul(calls[-1][0], later, out=calls[-1][1]))
    (failure,) = cell(one, one.samples).failures
    assert failure.kind is Kind.LATE
    assert failure.got.startswith("when the call returns: float32 (40,), at [0]: ")


def test_values_are_not_compared_if_results_are_late(subject: Any) -> None:
    one = subject("return x * 2", "return x * 3")
    recorder = Recorder("f", "eager", "cpu", lambda event: None)
    recorder.fail(Failure(Kind.LATE, "sample 1"))
    check_results(one, recorder, one.samples)
    assert [failure.kind for failure in recorder.cell().failures] == [Kind.LATE]


@pytest.mark.parametrize(
    ("kernel", "got"),
    [
        ("high = x + n\n    return high, high if n == 1 else x - n", "two results that share memory"),
        ("return x + n if n else x, x - n", "a result that shares memory with an argument"),
    ],
)
def test_results_that_share_memory_only_with_an_option_are_found(subject: Any, kernel: str, got: str) -> None:
    one = subject("return x + n, x - n", kernel, "make.randn(40), 2", ", n: int", "tuple[Tensor, Tensor]")
    found = [failure for failure in cell(one).failures if failure.kind is Kind.ALIAS]
    assert [failure.got for failure in found] == [got]
    assert found[0].case in ("sample 1, n=1", "sample 1, n=0")


def test_an_undeclared_write_is_reported_before_the_result(subject: Any) -> None:
    one = subject("return x * 2", "x.mul_(2)\n    return x.clone()")
    (failure,) = cell(one, one.samples).failures
    assert (failure.kind, failure.got) == (Kind.WRITES_INPUT, "the call changed x")


def test_the_kernel_must_reject_what_the_reference_rejects(subject: Any) -> None:
    reference = "if x.dim() != 1: raise ValueError('one dimension')\n    return x * 2"
    found = cell(subject(reference, "return x * 2")).failures
    assert {failure.kind for failure in found} == {Kind.BAD_INPUT}
    assert found[0].expected == "an error, as raised by the reference: ValueError: one dimension"


@pytest.mark.parametrize(
    ("kernel", "kinds"),
    [
        ("return x.new_zeros(0)", set()),  # the reference does not show what is right
        ("raise ValueError('n')", set()),
        ("x.zero_()\n    return x.clone()", {Kind.WRITES_INPUT}),
    ],
)
def test_integers_that_python_cannot_pass_to_pytorch_may_be_accepted_or_rejected(
    subject: Any, kernel: str, kinds: set[Kind]
) -> None:
    reference = "return x + torch.zeros(2 * n if n > 2**62 else 0).sum()"
    one = subject(reference, kernel, "make.randn(40), 1", parameters=", n: int = 1")
    (case,) = [case for case in one.varied if case.name == f"sample 1, n={2**63 - 1}"]
    assert one.expected(case).overflows
    assert {failure.kind for failure in cell(one, [case]).failures} == kinds


def test_only_claimed_calls_must_not_be_rejected(subject: Any) -> None:
    refuses = "if x.shape[0] != 40: raise ValueError('40')\n    return x * 2"
    found = cell(subject("return x * 2", refuses))
    assert found.failures == ()
    assert found.rejected > 5
    (failure,) = cell(subject("return x * 2", "raise ValueError('never')")).failures[:1]
    assert (failure.kind, failure.got) == (Kind.RAISES, "ValueError: never")


def test_nothing_is_compared_if_pytorch_lacks_a_kernel_for_the_reference(subject: Any) -> None:
    missing = "if x.dtype == torch.int32: raise NotImplementedError('int32')\n    return x * 2"
    one = subject(missing, "return x * 2")
    (case,) = [case for case in one.varied if case.name == "sample 1 in int32"]
    assert one.expected(case).unknown
    assert cell(one, [case]).failures == ()
    # An error that the reference raises itself counts as a rejection.
    one = subject(missing.replace("NotImplementedError", "ValueError"), "return x * 2")
    assert [failure.kind for failure in cell(one, [case]).failures] == [Kind.BAD_INPUT]


@pytest.mark.parametrize(
    ("family", "judged"),
    [(Family.MAGNITUDE, False), (Family.OPTION, False), (Family.PAIR, False), (Family.STRIDES, True)],
)
def test_no_kernel_is_judged_at_magnitudes_that_the_reference_does_not_support(
    subject: Any, family: Family, judged: bool
) -> None:
    # The square in the reference overflows in float32.
    one = subject("return (x * x).sqrt()", "return x.abs() * 3")
    large = Case("large", family, {"x": torch.full((40,), 1e30)})
    assert not one.expected(large).is_accurate
    assert bool(cell(one, [large]).failures) == judged
    usual = Case("usual", family, {"x": torch.full((40,), 2.0)})
    assert cell(one, [usual]).failures


def test_no_kernel_is_judged_where_the_reference_overflows_even_in_float64(subject: Any) -> None:
    one = subject("return x.exp().log1p()", "return x + 3")
    large = Case("large", Family.MAGNITUDE, {"x": torch.full((40,), 1e4)})
    assert cell(one, [large]).failures == ()
    # Special values in the arguments do not count as an overflow.
    special = Case("special", Family.PAIR, {"x": torch.tensor([float("inf"), 1.0] * 20)})
    assert cell(one, [special]).failures


def test_an_infinity_at_an_option_of_zero_is_expected(subject: Any) -> None:
    one = subject(
        "return x / t", "if t == 0: return x * 0\n    return x / t", "make.rand(3, 40) + 1, 2.0", ", t: float"
    )
    (failure,) = cell(one).failures
    assert failure.kind is Kind.OPTION
    assert "t=0.0" in failure.case


def test_a_stable_kernel_may_differ_from_a_reference_that_overflows_at_an_option(subject: Any) -> None:
    one = subject(
        "return (x / t).exp().sum(-1).log() * t",
        "return (x / t).logsumexp(-1) * t",
        "make.rand(3, 40), 1.0",
        ", t: float",
    )
    cases = {case.name: case for case in one.varied}
    assert not one.expected(cases["sample 1, t=1e-10"]).is_finite
    assert cell(one).failures == ()


def test_an_undeclared_write_is_reported_even_if_the_reference_is_inaccurate(subject: Any) -> None:
    one = subject("return x.exp().log1p()", "return x.add_(3) if float(x[0]) > 1e3 else x.exp().log1p()")
    large = Case("large", Family.MAGNITUDE, {"x": torch.full((40,), 1e4)})
    (failure,) = cell(one, [large]).failures
    assert (failure.kind, failure.got) == (Kind.WRITES_INPUT, "the call changed x")


def test_results_on_the_meta_device_are_compared_without_values(subject: Any) -> None:
    one = subject("return x * 2", "return x * 3")
    assert cell(one, [Case("meta", Family.BAD_DEVICE, {"x": torch.ones(3, device="meta")})]).failures == ()
    wrong = subject("return x * 2", "return x[:1] * 3")
    (failure,) = cell(wrong, [Case("meta", Family.BAD_DEVICE, {"x": torch.ones(3, device="meta")})]).failures
    assert failure.got == "float32 (1,) on meta"


def test_a_kernel_receives_booleans_with_other_bytes_than_0_and_1(subject: Any) -> None:
    byte = "return x.view(torch.uint8).float()"
    one = subject("return x.float()", byte, "make.randint(0, 2, 40).bool()")
    cases = [case for case in one.varied if case.family is Family.EDGE]
    assert kinds(cell(one, cases).failures) == {Kind.EDGE_VALUES: "sample 1, x in bytes other than 0 and 1"}


@pytest.mark.parametrize("dtype", ["torch.float8_e4m3fn", "torch.uint16", "torch.uint64", "torch.complex64"])
def test_dtypes_that_pytorch_hardly_supports_are_varied_as_far_as_possible(subject: Any, dtype: str) -> None:
    one = subject("return x.clone()", "return x.clone()", f"torch.ones(4, 6).to({dtype})")
    found = cell(one)
    assert found.failures == ()
    assert {Family.STRIDES, Family.OFFSET, Family.RANK} <= {case.family for case in one.varied}
