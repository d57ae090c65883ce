from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import torch

from opwright.checker.cases.case import Case, Family
from opwright.checker.compare import fault_of
from opwright.checker.kinds import Kind
from opwright.spec.expected import expected_results
from tests.unit.checker.conftest import MakeSubject, operator

if TYPE_CHECKING:
    from opwright.checker.subject import Subject
    from opwright.checker.verdict import Failure

SCALED = """
@library.op
def scaled(x: Tensor) -> Tensor:
    if x.dim() != 1:
        raise ValueError(f"x must be a vector, and has {x.dim()} dimensions")
    return 2 * x

@scaled.samples
def _(make):
    yield make.randn(40)
"""


@pytest.fixture(scope="module")
def scaled(make_subject: MakeSubject) -> Subject:
    return make_subject(SCALED)


def fault(subject: Subject, given: Case, *results: Any) -> Failure:
    found = subject.judge(given, list(results))
    assert found is not None
    return found


def case(family: Family, *shape: int, claimed: bool = False) -> Case:
    return Case(f"{family.value} {shape}", family, {"x": torch.ones(*shape)}, claimed=claimed)


@pytest.mark.parametrize(
    ("family", "kind"),
    [
        (Family.SAMPLE, Kind.WRONG_RESULT),
        (Family.DTYPE, Kind.WRONG_DTYPE),
        (Family.BAD_DTYPE, Kind.WRONG_DTYPE),
        (Family.STRIDES, Kind.STRIDES),
        (Family.OFFSET, Kind.OFFSET),
        (Family.SIZE, Kind.SIZE),
        (Family.EMPTY, Kind.SIZE),
        (Family.UNEQUAL, Kind.SIZE),
        (Family.RANK, Kind.RANK),
        (Family.MAGNITUDE, Kind.MAGNITUDE),
        (Family.EDGE, Kind.EDGE_VALUES),
        (Family.NUMBER, Kind.EDGE_VALUES),
        (Family.INTEGER, Kind.INTEGER_VALUES),
        (Family.OPTION, Kind.OPTION),
        (Family.SHARED, Kind.SHARED),
        (Family.PAIR, Kind.WRONG_RESULT),
        (Family.SPECIAL, Kind.SPECIAL_VALUES),
        (Family.FAR, Kind.INDEX_OVERFLOW),
        (Family.BAD_RANK, Kind.BAD_INPUT),
        (Family.BAD_DEVICE, Kind.BAD_INPUT),
    ],
)
def test_the_kind_of_a_wrong_result_is_what_the_case_varies(scaled: Subject, family: Family, kind: Kind) -> None:
    failure = fault(scaled, case(family, 40), 3 * torch.ones(40))
    assert failure.kind is kind
    assert failure.got == "float32 (40,), at [0]: 3.0; 40 of 40 elements differ, the largest difference is 1"
    assert failure.expected == "at [0]: 2.0"
    assert failure.repro.endswith(".scaled(x)")


@pytest.mark.parametrize("family", [Family.MAGNITUDE, Family.DTYPE, Family.BAD_DTYPE])
def test_a_small_relative_error_is_lost_precision(scaled: Subject, family: Family) -> None:
    assert fault(scaled, case(family, 40), 2.1 * torch.ones(40)).kind is Kind.PRECISION


def test_a_correct_result_is_not_a_failure(scaled: Subject) -> None:
    assert scaled.judge(case(Family.SAMPLE, 40), [2 * torch.ones(40)]) is None


def test_a_wrong_result_in_a_claimed_dtype_is_not_a_wrong_dtype(scaled: Subject) -> None:
    assert fault(scaled, case(Family.DTYPE, 39, claimed=True), 3 * torch.ones(39)).kind is Kind.WRONG_RESULT


def test_a_result_of_another_type_has_its_own_kind(scaled: Subject) -> None:
    for results in ([torch.ones(40).double()], [torch.ones(40), torch.ones(40)], []):
        failure = fault(scaled, case(Family.STRIDES, 40), *results)
        assert failure.kind is Kind.RESULT_TYPE
    assert (failure.got, failure.expected) == ("0 results", "1 results")


def test_an_input_that_the_reference_rejects_must_be_rejected(scaled: Subject) -> None:
    failure = fault(scaled, case(Family.STRIDES, 4, 5), torch.ones(4, 5))
    assert failure.kind is Kind.BAD_INPUT
    assert failure.got == "float32 (4, 5)"
    assert failure.expected == (
        "an error, as raised by the reference: ValueError: x must be a vector, and has 2 dimensions"
    )


def test_the_reference_runs_once_per_case(make_subject: MakeSubject) -> None:
    subject = make_subject("""
calls = []

@library.op
def counted(x: Tensor) -> Tensor:
    calls.append(x.dtype)
    return x + len(calls)

@counted.samples
def _(make):
    yield make.randn(3)
""")
    (sample,) = subject.samples
    calls = subject.op.reference.__globals__["calls"]
    for _ in range(3):
        subject.expected(sample)
    assert calls == [torch.float32, torch.float64]
    subject.forget(sample)
    subject.expected(sample)
    assert len(calls) == 4


BYTES = operator("x: Tensor", "x.view(torch.uint8) if x.dim() == 1 else x.float()", "make.randn(4)")


def test_an_oracle_that_returns_another_shape_is_reported(make_subject: MakeSubject) -> None:
    subject = make_subject(f"{BYTES}\n@f.oracle\ndef _(x):\n    return x[:1]")
    refusal = subject.expected(subject.samples[0]).refusal
    assert refusal == "the oracle returns shapes [(1,)], the reference [(16,)]: they must be equal"


def test_a_reference_that_rejects_float64_or_reads_bytes_is_its_own_oracle(make_subject: MakeSubject) -> None:
    for reference in (BYTES, BYTES.replace("return", "assert x.dtype == torch.float32\n    return")):
        subject = make_subject(reference)
        (sample,) = subject.samples
        wanted = expected_results(subject.op, sample.plain)
        assert not wanted.refusal
        assert wanted.precise[0] is wanted.own[0] or torch.equal(wanted.precise[0], wanted.own[0])


def _fault_of_a_large_call(scaled: Subject, factor: float, device: str) -> Failure | None:
    given = case(Family.FAR, 4)
    given = replace(given, arguments={name: one.to(device) for name, one in given.arguments.items()})
    wanted = replace(expected_results(scaled.op, given.fresh), nearby=None)
    return fault_of(scaled.op, given, wanted, [2 * factor * given.arguments["x"]])


@pytest.mark.parametrize("factor", [1.01, 0.0])
def test_every_error_of_a_large_call_counts(scaled: Subject, factor: float) -> None:
    assert _fault_of_a_large_call(scaled, factor, "cpu") is not None


@pytest.mark.needs("cuda")
@pytest.mark.parametrize(("factor", "is_noticed"), [(1.01, False), (0.0, True)])
def test_only_large_errors_of_a_large_call_on_a_gpu_count(scaled: Subject, factor: float, *, is_noticed: bool) -> None:
    assert (_fault_of_a_large_call(scaled, factor, "cuda") is not None) == is_noticed
