from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from opwright.checker.cases.case import Family
from opwright.spec import derive
from tests.unit.checker.cases.conftest import ASKED, SMALLEST_LAST, WRITTEN, of, shapes

if TYPE_CHECKING:
    from opwright.checker.subject import Subject
    from tests.unit.checker.conftest import MakeSubject


def test_dtypes_are_tried_and_those_that_are_claimed_are_said(asked: Subject) -> None:
    tried = of(asked, Family.DTYPE)
    assert {name.rpartition(" ")[2] for name in tried} == {"float64", "bfloat16", "float16", "int32"}
    for name, case in tried.items():
        dtype = getattr(torch, name.rpartition(" ")[2])
        assert {tensor.dtype for tensor in derive.tensors(case.arguments)} == {dtype}
        assert case.claimed == (dtype in {torch.float64, torch.bfloat16})
    assert {case.name for case in asked.claimed} == {case.name for case in asked.samples} | {
        name for name, case in tried.items() if case.claimed
    }


def test_what_says_its_dtype_keeps_it(written: Subject) -> None:
    for case in of(written, Family.DTYPE).values():
        assert case.arguments["index"].dtype == torch.int64


def test_only_the_two_smallest_samples_are_varied(asked: Subject) -> None:
    assert {case.name[: len("sample 1")] for case in asked.varied} == {"sample 1", "sample 2"}


def test_special_values_are_there_and_usual_ones_beside_them(asked: Subject) -> None:
    special = of(asked, Family.SPECIAL)
    nan = special["sample 1 with NaN"].arguments["x"].flatten()
    assert nan.isnan().nonzero().flatten().tolist() == list(range(0, 72, 5))
    infinities = special["sample 1 with infinities"].arguments["x"].flatten()
    assert (infinities[0], infinities[5], infinities[10]) == (float("inf"), float("-inf"), float("inf"))
    small = special["sample 1 with denormals and signed zeros"].arguments["x"].flatten()[::5]
    assert 0 < small[0] < torch.finfo(torch.float32).tiny
    assert small[2] == small[3] == 0
    assert small[2].signbit() != small[3].signbit()
    assert torch.equal(nan[1:5], asked.samples[0].arguments["x"].flatten()[1:5])


def test_integers_have_no_special_values(make_subject: MakeSubject) -> None:
    subject = make_subject("""
@library.op
def whole(x: Tensor) -> Tensor:
    return x + 1

@whole.samples
def _(make):
    yield make.randint(0, 5, 4, 4)
""")
    assert of(subject, Family.SPECIAL) == {}
    assert list(of(subject, Family.BAD_DTYPE)) == ["sample 1, x alone in float32"]


def test_bad_inputs_are_of_every_sort(asked: Subject) -> None:
    bad = of(asked, Family.BAD_DTYPE, Family.BAD_RANK, Family.BAD_SIZE, Family.BAD_DEVICE)
    wanted = {
        "x alone in float64": [(6, 12), (12, 3)],
        "x alone in int64": [(6, 12), (12, 3)],
        "y with one dimension more": [(6, 12), (1, 12, 3)],
        "y with one dimension less": [(6, 12), (3,)],
        "x flattened": [(72,), (12, 3)],
        "x one shorter in dimension 1": [(6, 11), (12, 3)],
        "y one longer in dimension 0": [(6, 12), (13, 3)],
        "x on the meta device": [(6, 12), (12, 3)],
    }
    for name, sizes in wanted.items():
        assert shapes(bad[f"sample 1, {name}"]) == sizes
    assert bad["sample 1, x alone in int64"].arguments["x"].dtype == torch.int64
    assert bad["sample 1, x on the meta device"].arguments["x"].is_meta
    assert not any(case.claimed for case in bad.values())


def test_a_lone_tensor_has_no_partner_to_differ_from(make_subject: MakeSubject) -> None:
    subject = make_subject("""
@library.op
def alone(x: Tensor) -> Tensor:
    return x + 1

@alone.samples
def _(make):
    yield make.randn(12, 5)
""")
    assert of(subject, Family.BAD_SIZE, Family.BAD_DEVICE) == {}
    assert of(subject, Family.BAD_RANK)


def test_tensors_in_lists_are_varied_each(make_subject: MakeSubject) -> None:
    subject = make_subject("""
@library.op
def joined(xs: Sequence[Tensor], y: Tensor | None = None) -> Tensor:
    return sum(xs)

@joined.samples
def _(make):
    yield [make.randn(3, 4), make.randn(3, 4)]
""")
    case = of(subject, Family.STRIDES)["sample 1, xs[1] transposed"]
    first, second = case.arguments["xs"]
    assert (first.stride(), second.stride()) == ((4, 1), (1, 3))
    assert torch.equal(second, subject.samples[0].arguments["xs"][1])
    assert case.arguments["y"] is None


def test_rows_far_apart_are_tried_but_not_of_what_is_written_to(asked: Subject, make_subject: MakeSubject) -> None:
    assert list(of(asked, Family.FAR)) == [
        "sample 1, x with rows more than 2^31 elements apart",
        "sample 1, y with rows more than 2^31 elements apart",
    ]
    subject = make_subject("""
@library.op(mutates=("x",))
def added_(x: Tensor, y: Tensor) -> None:
    x.add_(y)

@added_.samples
def _(make):
    yield make.randn(3, 4), make.randn(3, 4)
""")
    assert list(of(subject, Family.FAR)) == ["sample 1, y with rows more than 2^31 elements apart"]


def test_each_case_has_a_name_of_its_own(asked: Subject, written: Subject) -> None:
    for subject in (asked, written):
        names = [case.name for case in (*subject.samples, *subject.varied)]
        assert len(set(names)) == len(names)


@pytest.mark.parametrize("text", [ASKED, WRITTEN, SMALLEST_LAST])
def test_a_quick_check_tries_some_of_the_same(make_subject: MakeSubject, text: str) -> None:
    quick, all_of_them = make_subject(text, quick=True), make_subject(text)
    names = {case.name for case in all_of_them.varied}
    assert {case.name for case in quick.varied} < names
    assert {case.family for case in quick.varied} == {case.family for case in all_of_them.varied}


def test_the_seed_decides_the_numbers_and_nothing_else(make_subject: MakeSubject) -> None:
    first, again, other = (make_subject(ASKED, quick=True, seed=seed) for seed in (3, 3, 4))
    for one, same, another in zip(first.varied, again.varied, other.varied, strict=True):
        assert one.name == same.name == another.name
        tensors = [derive.tensors(case.arguments) for case in (one, same, another)]
        for mine, its, different in zip(*tensors, strict=True):
            if mine.is_meta:
                continue
            assert torch.equal(mine.nan_to_num(), its.nan_to_num())
            assert mine.numel() < 2 or not torch.equal(mine.nan_to_num(), different.nan_to_num())
