from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from opwright.checker.cases.case import Case, Family
from opwright.checker.cases.sharing import shared
from opwright.checker.kinds import Kind
from tests.unit.checker.conftest import MakeSubject, operator

if TYPE_CHECKING:
    from opwright.checker.subject import Subject

OPERATOR = """
@library.op({options})
def f(x: Tensor, y: Tensor, z: Tensor) -> {result}:
    {body}

@f.samples
def _(make):
    yield make.randn(4, 3), make.randn(4, 3), make.randn(5)
"""
PURE = OPERATOR.format(options="", result="Tensor", body="return x + y")


def cases(subject: Subject) -> dict[str, Case]:
    (sample,) = subject.samples
    found = {one.what: one.of(sample) for one in shared(subject.op, sample)}
    assert {case.family for case in found.values()} <= {Family.SHARED}
    return found


def storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def test_arguments_of_the_same_sizes_share_memory(make_subject: MakeSubject) -> None:
    found = cases(make_subject(PURE))
    assert list(found) == ["x and y the same tensor", "x and y in overlapping memory"]
    same = found["x and y the same tensor"].arguments
    assert same["x"] is same["y"]
    overlapping = found["x and y in overlapping memory"].arguments
    assert overlapping["x"].shape == overlapping["y"].shape == (4, 3)
    assert storage(overlapping["x"]) == storage(overlapping["y"])
    assert torch.equal(overlapping["x"][1:], overlapping["y"][:-1])


IN_PLACE = OPERATOR.format(options='mutates=("x",)', result="None", body="{}")


def test_a_mutated_argument_equals_another_or_contains_it(make_subject: MakeSubject) -> None:
    found = cases(make_subject(IN_PLACE.format("x.copy_(x + y)")))
    assert list(found) == ["x and y the same tensor", "z in the memory of x"]
    same = found["x and y the same tensor"].arguments
    assert same["x"] is same["y"]
    inside = found["z in the memory of x"].arguments
    assert storage(inside["z"]) == storage(inside["x"])
    assert torch.equal(inside["z"], inside["x"].flatten()[:5])


def test_a_mutated_argument_is_inside_a_larger_one(make_subject: MakeSubject) -> None:
    text = OPERATOR.format(options='mutates=("z",)', result="None", body="z.copy_(x.flatten()[:5])")
    assert list(cases(make_subject(text))) == [
        "x and y the same tensor",
        "x and y in overlapping memory",
        "z in the memory of x",
        "z in the memory of y",
    ]


def test_two_mutated_arguments_do_not_share_memory(make_subject: MakeSubject) -> None:
    text = OPERATOR.format(options='mutates=("x", "y", "z")', result="None", body="x.add_(y)")
    assert cases(make_subject(text)) == {}


def test_expected_results_use_the_values_before_the_call(make_subject: MakeSubject) -> None:
    subject = make_subject(IN_PLACE.format("x.copy_(x - z.sum())"))
    case = cases(subject)["z in the memory of x"]
    x, z = (case.plain(apart=True)[name] for name in "xz")
    assert subject.judge(case, [x - z.sum()]) is None
    wrong = subject.judge(case, [x])
    assert wrong is not None
    assert wrong.kind is Kind.SHARED


@pytest.mark.parametrize("body", ["x.mul_(2); x.add_(y)", "x.sub_(x[0]); x.add_(y)"], ids=["reads again", "rejects"])
def test_a_reference_that_reads_what_it_wrote_has_no_expected_result(make_subject: MakeSubject, body: str) -> None:
    subject = make_subject(IN_PLACE.format(body))
    expected = subject.expected(cases(subject)["x and y the same tensor"])
    assert expected.unknown
    assert expected.refusal == "the reference overwrites memory that it still reads"


def test_tensors_in_a_list_share_memory_too(make_subject: MakeSubject) -> None:
    text = operator("xs: Sequence[Tensor]", "xs[0] + xs[1]", "([make.randn(1, 3), make.randn(1, 3)],)")
    assert list(cases(make_subject(text))) == ["xs[0] and xs[1] the same tensor"]  # rows of one cannot overlap


def test_copied_arguments_share_memory_as_in_the_case(make_subject: MakeSubject) -> None:
    for case in cases(make_subject(PURE)).values():
        for copy in (case.fresh(), case.plain()):
            assert storage(copy["x"]) == storage(copy["y"])
            assert storage(copy["x"]) != storage(case.arguments["x"])
            assert copy["y"].storage_offset() == case.arguments["y"].storage_offset()
            assert torch.equal(copy["x"], case.arguments["x"])
            assert torch.equal(copy["y"], case.arguments["y"])
            copy["x"].zero_()
            assert not copy["y"][:-1].any()
        first, second = case.fresh(), case.fresh()
        assert storage(first["x"]) != storage(second["x"])


def test_the_reference_gets_separate_copies_if_only_the_search_shares_memory(make_subject: MakeSubject) -> None:
    text = PURE.replace("return x + y", "return (x - y) + (x.data_ptr() == y.data_ptr())")
    subject = make_subject(text)
    case = cases(subject)["x and y the same tensor"]
    apart = case.plain(apart=True)
    assert storage(apart["x"]) != storage(apart["y"])
    assert torch.equal(apart["x"], apart["y"])
    assert subject.judge(case, [torch.zeros(4, 3)]) is None
    # Terms that cancel may round as they do for separate tensors.
    assert subject.judge(case, [torch.full((4, 3), 1e-9)]) is None
    assert subject.judge(case, [torch.full((4, 3), 1e-3)]) is not None
    own = Case("the author's own", Family.SAMPLE, case.arguments)
    assert subject.judge(own, [torch.ones(4, 3)]) is None


def test_copied_arguments_with_separate_memory_share_none() -> None:
    case = Case("sample 1", Family.SAMPLE, {"x": torch.ones(3), "y": torch.ones(3)})
    copy = case.fresh()
    assert storage(copy["x"]) != storage(copy["y"])
