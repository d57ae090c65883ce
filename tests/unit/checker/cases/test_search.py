from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from opwright.checker.cases.case import Family
from opwright.checker.cases.values import contents
from opwright.spec import derive
from tests.unit.checker.cases.conftest import ASKED, SMALLEST_LAST, WRITTEN, of, shapes
from tests.unit.checker.conftest import MakeSubject, operator

if TYPE_CHECKING:
    from opwright.checker.cases.case import Case
    from opwright.checker.subject import Subject


def test_dtypes_are_tried_and_the_claimed_ones_are_marked(asked: Subject) -> None:
    tried = of(asked, Family.DTYPE)
    names = {"float64", "bfloat16", "float16", "complex64", "int32"}
    assert {name.rpartition(" ")[2] for name in tried} == names
    for name, case in tried.items():
        dtype = getattr(torch, name.rpartition(" ")[2])
        assert {tensor.dtype for tensor in derive.tensors(case.arguments)} == {dtype}
        assert case.claimed == (dtype in {torch.float64, torch.bfloat16})
    assert {case.name for case in asked.claimed} == {case.name for case in asked.samples} | {
        name for name, case in tried.items() if case.claimed
    }


def test_a_tensor_with_an_explicit_dtype_keeps_it(written: Subject) -> None:
    for case in of(written, Family.DTYPE).values():
        assert case.arguments["index"].dtype == torch.int64


def test_only_options_ties_dtypes_and_dimensions_vary_beyond_the_two_smallest_samples(asked: Subject) -> None:
    of_all = (Family.OPTION, Family.EDGE, Family.UNEQUAL, Family.BAD_DTYPE, Family.BAD_RANK, Family.BAD_DEVICE)
    varied = [case for case in asked.varied if case.family not in of_all]
    assert {case.name[: len("sample 1")] for case in varied} == {"sample 1", "sample 2"}
    for family in of_all:
        named = {name[: len("sample 1")] for name in of(asked, family)}
        assert {"sample 1", "sample 2", "sample 3"} <= named


def test_a_dimension_of_1_is_tried_with_other_strides(asked: Subject) -> None:
    (case,) = [
        case
        for name, case in of(asked, Family.STRIDES).items()
        if name == "sample 1, size 2 as 1, y with other strides of dimensions of 1"
    ]
    y = case.arguments["y"]
    assert (y.shape, y.stride()) == ((12, 1), (1, 2))
    assert y.is_contiguous()


def test_values_that_recurse_from_each_element_to_the_next_are_tried_at_large_sizes(make_subject: MakeSubject) -> None:
    sample = "make.randint(0, 3, 6, 5, dtype=torch.int32), make.randint(0, 2, 6, 5, dtype=torch.bool)"
    text = operator("image: Tensor, marks: Tensor", "image * marks", sample)
    found = {case.name: case for case in make_subject(text).varied}
    for size in ("size 6 as 52428", "size 5 as 43690"):
        for what in ("image one", "image sorted", "image sorted, largest first", "marks true"):
            tensors = derive.tensors(found[f"sample 1, {size}, {what}"].arguments)
            assert all(2**17 < tensor.numel() <= 2**18 for tensor in tensors)
        assert bool((found[f"sample 1, {size}, image one"].arguments["image"] == 1).all())
    assert not any("52428" in case.name for case in make_subject(text, quick=True).varied)


def test_only_floating_tensors_get_special_values(make_subject: MakeSubject) -> None:
    subject = make_subject(operator("x: Tensor", "x + 1", "make.randint(0, 5, 4, 4)"))
    assert of(subject, Family.SPECIAL, Family.MAGNITUDE) == {}
    assert of(subject, Family.INTEGER)
    alone = {name.rpartition(" ")[2] for name in of(subject, Family.BAD_DTYPE)}
    assert alone == {"float64", "float32", "float16", "bfloat16", "int32"}


def test_bad_inputs_of_every_kind_are_tried(asked: Subject) -> None:
    bad = of(asked, Family.BAD_DTYPE, Family.BAD_RANK, Family.UNEQUAL, Family.BAD_DEVICE)
    wanted = {
        "x alone in float64": [(6, 12), (12, 3)],
        "x alone in int64": [(6, 12), (12, 3)],
        "y with one more dimension": [(6, 12), (1, 12, 3)],
        "y with one fewer dimension": [(6, 12), (3,)],
        "x flattened": [(72,), (12, 3)],
        "dimension 1 of x one shorter": [(6, 11), (12, 3)],
        "dimension 0 of y one longer": [(6, 12), (13, 3)],
        "x on the meta device": [(6, 12), (12, 3)],
    }
    for name, sizes in wanted.items():
        assert shapes(bad[f"sample 1, {name}"]) == sizes
    assert bad["sample 1, x alone in int64"].arguments["x"].dtype == torch.int64
    assert bad["sample 1, x on the meta device"].arguments["x"].is_meta
    assert not any(case.claimed for case in bad.values())


def test_a_single_tensor_has_no_dtype_to_differ_from(make_subject: MakeSubject) -> None:
    subject = make_subject(operator("x: Tensor", "x + 1", "make.randn(12, 5)"))
    assert of(subject, Family.SHARED, Family.BAD_DEVICE) == {}
    assert of(subject, Family.BAD_RANK)


def test_each_tensor_of_a_list_is_varied(make_subject: MakeSubject) -> None:
    parameters = "xs: Sequence[Tensor], y: Tensor | None = None"
    subject = make_subject(operator(parameters, "sum(xs)", "[make.randn(3, 4), make.randn(3, 4)]"))
    case = of(subject, Family.STRIDES)["sample 1, xs[1] transposed"]
    first, second = case.arguments["xs"]
    assert (first.stride(), second.stride()) == ((4, 1), (1, 3))
    assert torch.equal(second, subject.samples[0].arguments["xs"][1])
    assert case.arguments["y"] is None


def test_distant_rows_are_tried_except_for_mutated_arguments(asked: Subject, make_subject: MakeSubject) -> None:
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


def test_elements_of_mutated_arguments_never_share_memory(make_subject: MakeSubject) -> None:
    subject = make_subject("""
@library.op(mutates=("xs",))
def added_(xs: Sequence[Tensor], y: Tensor) -> None:
    for x in xs:
        x.add_(y)

@added_.samples
def _(make):
    yield [make.randn(3, 4)], make.randn(3, 4)
""")
    named = {"expanded", "expanded in the last dimension", "with overlapping rows"}
    tried = {name.removeprefix("sample 1, ") for name in of(subject, Family.STRIDES)}
    assert {f"y {what}" for what in named} <= tried
    assert "xs[0] transposed" in tried
    assert not {f"xs[0] {what}" for what in named} & tried
    combined = " and ".join(case.name for case in subject.pairs())
    assert not [what for what in named if f"xs[0] {what}" in combined]


def test_case_names_are_unique(asked: Subject, written: Subject) -> None:
    for subject in (asked, written):
        names = [case.name for case in (*subject.samples, *subject.varied)]
        assert len(set(names)) == len(names)


@pytest.mark.parametrize("text", [ASKED, WRITTEN, SMALLEST_LAST])
def test_a_quick_check_tries_a_subset(make_subject: MakeSubject, text: str) -> None:
    quick, all_of_them = make_subject(text, quick=True), make_subject(text)
    names = {case.name for case in all_of_them.varied}
    # The largest size, at which both try equal values, is not the same in both.
    of_quick = {case.name for case in quick.varied}
    assert all(" as " in name and name.endswith((" constant", " with ties")) for name in of_quick - names)
    assert len(quick.varied) < len(all_of_them.varied)
    # A quick check tries other values only in claimed dtypes, none of which is an integer dtype.
    assert {case.family for case in all_of_them.varied} - {case.family for case in quick.varied} <= {Family.INTEGER}


def equal(one: Case, other: Case) -> bool:
    """Whether two cases have the same arguments."""
    mine, its = (derive.tensors(case.arguments) for case in (one, other))
    return shapes(one) == shapes(other) and all(
        torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(mine, its, strict=True) if not a.is_meta
    )


def test_the_seed_determines_the_values_and_the_choice_of_a_quick_check(make_subject: MakeSubject) -> None:
    first, again, other = (make_subject(ASKED, quick=True, seed=seed) for seed in (3, 3, 4))
    for cases in (lambda subject: subject.varied, lambda subject: list(subject.pairs())):
        assert [case.name for case in cases(first)] == [case.name for case in cases(again)]
        assert all(map(equal, cases(first), cases(again)))
        assert {case.name for case in cases(first)} != {case.name for case in cases(other)}
    mine, its = of(first, Family.STRIDES, Family.DTYPE), of(other, Family.STRIDES, Family.DTYPE)
    assert list(mine) == list(its)
    assert not any(equal(mine[name], its[name]) for name in mine)


def test_large_sizes_split_the_work_among_threads_for_each_varied_sample(make_subject: MakeSubject) -> None:
    subject = make_subject(SMALLEST_LAST)
    for number in (1, 2):
        counts = [
            sum(tensor.numel() for tensor in derive.tensors(case.arguments))
            for name, case in of(subject, Family.SIZE).items()
            if name.startswith(f"sample {number}")
        ]
        assert 2**17 <= max(counts) <= 2**21


def test_a_pair_combines_two_variations(asked: Subject) -> None:
    found = list(asked.pairs())
    names = [case.name for case in found]
    assert len(found) > 100
    assert len(set(names)) == len(names)
    assert {case.family for case in found} == {Family.PAIR}
    assert not any(case.claimed for case in found)
    # A sample with two variations, or a variation of size or dtype with two more.
    assert {name.replace(" and size", "").count(", ") for name in names} >= {2, 3}


def test_a_pair_keeps_the_layout_that_it_names(asked: Subject) -> None:
    transposed = [case for case in asked.pairs() if case.name.endswith("x transposed")]
    assert transposed
    for case in transposed:
        x = case.arguments["x"]
        assert 1 in x.shape or x.stride(0) == 1


def test_ties_are_tried_with_each_option(make_subject: MakeSubject) -> None:
    subject = make_subject(operator("x: Tensor, scale: float", "(x / scale).round()", "make.randn(6), 0.05"))
    found = {case.name: case for case in subject.pairs()}
    for scale in (1.0, 0.5, 2.0):
        case = found[f"sample 1, x of halves, scale={scale}"]
        assert case.arguments["scale"] == scale
        assert (case.arguments["x"] % 1 == 0.5).all()
    with_ties = {name.rpartition("scale=")[2] for name in found if ", x with ties, scale=" in name}
    assert with_ties >= {"0.0", "1e-10", "3.7"}


def test_the_only_tensor_of_a_kind_is_varied_among_several_of_another(make_subject: MakeSubject) -> None:
    parameters = "x: Tensor, y: Tensor, at: Tensor, twice: bool"
    sample = "make.randn(6), make.randn(6), make.randint(0, 6, 4), False"
    subject = make_subject(operator(parameters, "(x + y)[at] * (2 if twice else 1)", sample))
    tried = {case.name for case in subject.pairs()}
    families = (Family.EDGE, Family.INTEGER)
    numbers = [one.what for one in contents(subject.samples[0], 0, each=False) if one.family in families]
    alone = [what for what in numbers if what.startswith("at ")]
    together = [what for what in numbers if what.startswith("all tensors ")]
    assert alone
    assert together
    assert {f"sample 1, {what}, twice=True" for what in (*alone, *together)} <= tried


def test_a_quick_check_tries_every_content_of_the_only_tensor_of_a_kind(make_subject: MakeSubject) -> None:
    text = operator("x: Tensor, at: Tensor", "x[at]", "make.randn(6), make.randint(0, 6, 4)")
    subject = make_subject(text, quick=True)
    tried = {case.name for case in subject.varied}
    wanted = {f"sample 1, {one.what}" for one in contents(subject.samples[0], 0) if one.is_of_only_tensor}
    assert {"sample 1, x of sorted small integers", "sample 1, at of both signs"} <= wanted <= tried


def test_a_quick_check_tries_some_options_of_every_sample(make_subject: MakeSubject) -> None:
    samples = 'make.randn(6), 1, "sum"', 'make.randn(7), 1, "mean"'
    text = operator("x: Tensor, n: int, mode: str", 'x * n if mode == "sum" else x / n', *samples)
    subject = make_subject(text, quick=True)
    options_of_second = [
        case for case in subject.varied if case.family is Family.OPTION and case.name.startswith("sample 2, ")
    ]
    assert len(options_of_second) == 8
    assert {case.argument for case in options_of_second} == {"n", "mode"}
    at_random = [case.name for case in subject.pairs() if ", at random: " in case.name]
    assert {name.partition(",")[0] for name in at_random} == {"sample 1", "sample 2"}


def test_a_quick_check_tries_all_variations_of_a_mask_among_other_tensors(make_subject: MakeSubject) -> None:
    parameters = "a: Tensor, b: Tensor, c: Tensor, mask: Tensor"
    sample = "make.randn(4, 5), make.randn(4, 5), make.randn(4, 5), make.rand(4, 5) > 0.5"
    text = operator(parameters, "torch.where(mask, a + b, c)", sample)
    names = of(make_subject(text, quick=True), Family.EDGE)
    for what in ("true", "false", "inverted", "with one true", "with one false", "in bytes other than 0 and 1"):
        assert f"sample 1, mask {what}" in names


def test_arguments_in_mutated_memory_are_tried_with_each_option(make_subject: MakeSubject) -> None:
    subject = make_subject(
        """
@library.op(mutates=("canvas",))
def paste_(canvas: Tensor, patch: Tensor, top: int) -> None:
    canvas[top : top + len(patch)] = patch.clone()

@paste_.samples
def _(make):
    yield make.randn(9, 4), make.randn(3, 4), 5
"""
    )
    shared = [case for case in subject.pairs() if ", patch in the memory of canvas, top=" in case.name]
    assert {case.arguments["top"] for case in shared} >= {0, 1, 2, 4}
    for case in shared:
        assert case.family in (Family.SHARED, Family.PAIR)
        assert case.arguments["patch"].data_ptr() == case.arguments["canvas"].data_ptr()
    assert any(case.family is Family.SHARED for case in shared)


def test_pairs_of_lists_have_unique_names(make_subject: MakeSubject) -> None:
    parameters = "xs: Sequence[Tensor], n: int"
    subject = make_subject(operator(parameters, "sum(xs[1:], xs[0]) + n", "[make.randn(4), make.randn(4)], 3"))
    names = [case.name for case in subject.pairs()]
    assert len(set(names)) == len(names)
    assert any("xs=[" in name and " with " in name for name in names)


def test_bad_integers_are_tried_where_threads_split_the_work(make_subject: MakeSubject) -> None:
    sample = "make.randn(5, 4), make.randint(0, 5, make.size(7))"
    subject = make_subject(operator("table: Tensor, index: Tensor", "table[index]", sample))
    found = [case for case in subject.varied if case.name.endswith("index with one past the largest")]
    (large,) = [case for case in found if case.arguments["index"].numel() > 4096]
    assert int(large.arguments["index"].max()) == 5
    assert large.family is Family.INTEGER


def test_equal_values_are_tried_where_threads_split_the_work(make_subject: MakeSubject) -> None:
    subject = make_subject(
        """
@library.op
def f(x: Tensor, index: Tensor, mask: Tensor) -> Tensor:
    return torch.where(mask, x, 0).argmax() + index

@f.samples
def _(make):
    count = make.size(7)
    yield make.randn(count), make.randint(0, 5, count), make.rand(count) > 0.5
"""
    )
    large = [case for case in subject.varied if case.arguments["x"].numel() > 2**15]
    found = {case.name.rpartition(", ")[2]: case.arguments for case in large}
    assert {*found["x with ties"]["x"].tolist()} == {-1, 1}
    assert [found[f"{name} constant"][name].unique().numel() for name in ("x", "index")] == [1, 1]
    assert found["mask true"]["mask"].all()


def test_sorted_values_are_tried_at_sizes_beyond_16_bits(make_subject: MakeSubject) -> None:
    subject = make_subject(operator("x: Tensor", "x.argmax()", "make.randn(make.size(6))"))
    (case,) = [case for case in subject.varied if case.name == "sample 1, size 1 as 70001, x sorted"]
    assert case.arguments["x"].argmax() == 70000


def test_other_values_are_tried_in_each_dtype_and_all_of_them_in_claimed_ones(make_subject: MakeSubject) -> None:
    text = """
@library.op
def f(x: Tensor) -> Tensor:
    return x + 1

@f.samples(dtypes=(torch.float16, torch.float64))
def _(make):
    yield make.randn(6)
"""
    found = {case.name: case for case in make_subject(text).varied}
    for dtype in (torch.float64, torch.float16):
        name = f"sample 1 in {str(dtype).removeprefix('torch.')}, x times 100000"
        case = found[name]
        assert (case.family, case.claimed, case.arguments["x"].dtype) == (Family.MAGNITUDE, False, dtype)
    assert len([name for name in found if name.startswith("sample 1 in bfloat16, ")]) == 8
    quick = {case.name for case in make_subject(text, quick=True).varied}
    bases = {name.partition(", ")[0] for name in quick if ", x " in name}
    assert bases == {"sample 1", "sample 1 in float16", "sample 1 in float64"}
    assert quick <= set(found)
