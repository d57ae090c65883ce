"""Tests of other values for non-tensor arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor

from opwright.checker.cases.case import Case, Family
from opwright.checker.cases.options import _literals, options, thresholds
from opwright.checker.cases.samples import samples
from opwright.spec import Sample
from tests.unit.checker.conftest import MakeSubject, operator

if TYPE_CHECKING:
    from tests.unit.conftest import Describe

OPERATOR = """
MODES = {{"fast": 41, "exact": 42}}
LIMITS = (1700, 0.625)
UNUSED = {{"not asked for": 43, "unused": 1}}

@library.op
def f({parameters}) -> Tensor:
    \"\"\"Documented: the word "manual" and 9001 are not options.\"\"\"
    "another"
    if n == 12345 or MODES.get(mode) or mode == "slow":
        raise ValueError(f"this is a message about {{mode}}")
    return x * 0.875 * LIMITS[1]

@f.samples
def _(make):
    yield {sample}
"""


@pytest.fixture
def tried(make_subject: MakeSubject) -> Any:
    def tried(parameters: str, sample: str) -> dict[str, list[Any]]:
        given = parameters if "mode" in parameters else f"{parameters}, mode: str = 'slow'"
        given = given if "n:" in given else f"{given}, n: int = 0"
        subject = make_subject(OPERATOR.format(parameters=f"x: Tensor, {given}", sample=f"make.call({sample})"))
        (case,) = subject.samples
        found: dict[str, list[Any]] = {}
        for one in options(subject.op, case):
            assert one.family is Family.OPTION
            made = one.of(case).arguments
            (name,) = [name for name in made if made[name] is not case.arguments[name]]
            assert name == one.argument
            found.setdefault(name, []).append(made[name])
        return found

    return tried


def test_an_integer_is_tried_around_its_value_and_beyond_32_bits(tried: Any) -> None:
    found = tried("n: int", "make.randn(3), 6")["n"]
    assert {5, 7, -6, 12, 0, 1, -1} <= set(found)
    assert {2**31, 2**32, 2**32 + 1, -(2**31) - 1, 2**63 - 1, -(2**63)} <= set(found)
    assert 6 not in found
    assert len(set(found)) == len(found)


def test_an_integer_is_tried_as_a_large_size_and_as_an_index_in_the_tensors(tried: Any) -> None:
    at = "torch.tensor([[51, 47], [63, 58]], dtype=torch.{})"
    for dtype in ("int64", "uint16", "uint8"):
        found = tried("n: int, at: Tensor", f"make.randn(3), 6, {at.format(dtype)}")["n"]
        assert {51, 47, 63, 70001} <= set(found)
    others = tried("n: int, at: Tensor, e: Tensor", "make.randn(3), 6, make.rand(2) > 0.5, make.randint(0, 9, 0)")["n"]
    assert not {51, 47, 63} & set(others)


def test_the_flags_of_wanted_gradients_keep_their_number(describe: Describe) -> None:
    op = describe(
        """
@library.op
def product(x: Tensor, y: Tensor) -> Tensor:
    return x * y

product.backward()
"""
    ).ops["product_backward"]
    case = Case("sample 1", Family.SAMPLE, op.bind(Sample((*torch.ones(3, 2), [True, True]))))
    tried = [one.of(case).arguments["wanted"] for one in options(op, case)]
    assert tried == [[False, True], [True, False]]


def test_literals_of_the_reference_and_its_constants_are_tried_but_not_docstrings(tried: Any) -> None:
    found = tried("n: int, mode: str, scale: float", "make.randn(3), 6, 'slow', 1.0")
    assert {12345, 1700} <= set(found["n"])
    assert not {9001, 41, 43} & set(found["n"])
    assert {"fast", "exact", "", "SLOW"} <= set(found["mode"])
    assert not {"another", "manual", "unused", "slow"} & set(found["mode"])
    assert not [mode for mode in found["mode"] if " " in mode]
    assert {0.875, 0.625} <= set(found["scale"])
    assert {-1.0, 10.0, 0.1, 0.0, 1e10} <= set(found["scale"])


def test_a_long_table_adds_few_literals_after_those_of_the_source(make_subject: MakeSubject) -> None:
    subject = make_subject("""
TABLE = [at * 7 + 100000 for at in range(4096)]

@library.op
def f(x: Tensor, n: int) -> Tensor:
    return x * TABLE[n] if n != 12345 else x

@f.samples
def _(make):
    yield make.randn(3), 6
""")
    (case,) = subject.samples
    found = [one.of(case).arguments["n"] for one in options(subject.op, case)]
    assert {12345, 100000} <= set(found)
    assert len(found) < 60
    # The source is read only once.
    assert _literals(subject.op.reference) is _literals(subject.op.reference)


def test_a_flag_is_inverted(tried: Any) -> None:
    assert tried("flag: bool", "make.randn(3), True")["flag"] == [False]
    assert tried("flag: bool = False", "make.randn(3)")["flag"] == [True]


def test_given_optional_arguments_are_omitted_and_omitted_ones_given(tried: Any) -> None:
    parameters = "limit: float | None = None, flag: bool | None = None, other: Tensor | None = None"
    absent = tried(parameters, "make.randn(4, 3)")
    assert None not in absent["limit"]
    assert {0.0, 1.0, -1.0} <= set(absent["limit"])
    assert set(absent["flag"]) == {True, False}
    assert {tuple(one.shape) for one in absent["other"]} == {(4, 3), (3,), (4,)}
    present = tried(parameters, "make.randn(4, 3), 2.0, True, make.randn(3)")
    assert present["limit"][0] is None
    assert present["flag"] == [None, False]
    assert present["other"] == [None]


def test_a_mask_is_tried_for_an_omitted_vector(tried: Any) -> None:
    found = tried("other: Tensor | None = None", "make.randn(4)")["other"]
    assert {one.dtype for one in found} == {torch.float32, torch.bool}


def test_an_omitted_tensor_is_tried_with_the_shape_of_the_result(make_subject: MakeSubject) -> None:
    parameters = "x: Tensor, y: Tensor, out: Tensor | None = None"
    subject = make_subject(operator(parameters, "x @ y", "make.randn(2, 3), make.randn(3, 5)"))
    given = {one.what for one in options(subject.op, subject.samples[0])}
    assert {"out=a tensor (2, 3)", "out=a tensor (3, 5)", "out=a tensor (2, 5)"} <= given


def test_lists_of_numbers_are_tried_empty_longer_shorter_reversed_and_with_other_values(tried: Any) -> None:
    found = [tuple(one) for one in tried("sizes: list[int]", "make.randn(3), [2, 5]")["sizes"]]
    assert {(), (2,), (2, 5, 5), (5, 2), (2, 2), (0, 5), (2, -1), (2, 6), (-2, 5)} <= set(found)
    assert (2, 5) not in found
    dimensions = {(0,), (-1,), (0, 1), (1, 0), (-1, 0), (2, 0, 1)}
    assert dimensions <= set(found)
    assert dimensions <= {tuple(one) for one in tried("dims: list[int]", "make.randn(3), []")["dims"]}
    assert len(set(found)) == len(found)


def test_lists_of_flags_are_tried_with_each_inverted(tried: Any) -> None:
    found = [tuple(one) for one in tried("flags: list[bool]", "make.randn(3), [True, False]")["flags"]]
    assert {(), (False, False), (True, True), (True,)} <= set(found)


def test_lists_of_tensors_are_tried_empty_longer_shorter_and_reversed(tried: Any) -> None:
    found = tried("parts: Sequence[Tensor]", "make.randn(3), [make.randn(2), make.randn(4)]")["parts"]
    assert {tuple(one.shape[0] for one in parts) for parts in found} == {(), (2,), (2, 4, 4), (4, 2), (2, 2)}


def test_optional_tensors_of_a_list_are_omitted_one_at_a_time(tried: Any) -> None:
    found = tried("parts: Sequence[Tensor | None]", "make.randn(3), [make.randn(2), make.randn(4)]")["parts"]
    absent = [[one is None for one in parts] for parts in found if any(one is None for one in parts)]
    assert absent == [[True, False], [False, True]]


def test_an_empty_list_is_tried_with_tensors(tried: Any) -> None:
    found = tried("parts: Sequence[Tensor]", "make.randn(3), []")["parts"]
    assert [[tuple(one.shape) for one in parts] for parts in found] == [[(3,)], [(3,)]]
    assert all(isinstance(one, Tensor) for parts in found for one in parts)


def test_the_name_of_an_option_shows_its_value(make_subject: MakeSubject) -> None:
    subject = make_subject(
        OPERATOR.format(parameters="x: Tensor, n: int, mode: str", sample="make.randn(3), 6, 'slow'")
    )
    shown = [one.what for one in options(subject.op, subject.samples[0])]
    assert "n=-1" in shown
    assert "mode='fast'" in shown
    assert len(set(shown)) == len(shown)


def test_a_reference_without_source_has_no_literals(describe: Describe) -> None:
    library = describe("""
exec("def g(x: Tensor, n: int) -> Tensor:\\n    return x * 12345")
f = library.op(g)

@f.samples
def _(make):
    yield make.randn(3), 1
""")
    (op,) = library.ops.values()
    (case,) = samples(op, "cpu", 0)
    found = [one.of(case).arguments["n"] for one in options(op, case)]
    assert 0 in found
    assert 12345 not in found


def test_options_and_literals_may_be_thresholds_of_tensor_values(make_subject: MakeSubject) -> None:
    parameters = "x: Tensor, ignored: int, limit: float, flag: bool, sizes: Sequence[int]"
    reference = "torch.where((x > limit) & (x != ignored), x, 20.5)"
    subject = make_subject(operator(parameters, reference, "make.randn(3, 4), -100, 0.25, True, [7, 10**9]"))
    (case,) = subject.samples
    assert thresholds(subject.op, case) == [-100.0, 0.25, 7.0, 20.5, -20.5]
    with_number = {one.name for one in subject.varied if one.family is Family.NUMBER}
    assert {"sample 1, x with the number -100", "sample 1, x with the number 0.25"} <= with_number
