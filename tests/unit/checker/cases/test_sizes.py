from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from opwright.checker.cases.case import Family
from opwright.errors import SpecError
from opwright.spec import Make, derive
from tests.unit.checker.cases.conftest import of, shapes
from tests.unit.checker.conftest import MakeSubject, operator

if TYPE_CHECKING:
    from opwright.checker.subject import Subject


def test_requested_sizes_are_varied_together_with_what_depends_on_them(asked: Subject) -> None:
    sized = of(asked, Family.SIZE, Family.EMPTY)
    assert shapes(sized["sample 1, size 1 as 17"]) == [(17, 34), (34, 3)]
    assert sized["sample 1, size 1 as 17"].arguments["n"] == 17
    assert shapes(sized["sample 1, size 2 as 4099"]) == [(6, 12), (12, 4099)]
    assert shapes(sized["sample 2, size 1 as 0"]) == [(0, 0), (0, 50)]
    # Literals are not varied if sizes are requested.
    assert all(name.split(", ")[1].startswith(("size 1 as", "size 2 as")) for name in sized)


SIZES_OF_ITS_OWN = """
@library.op
def doubled(x: Tensor) -> Tensor:
    return 2 * x

@doubled.samples
def _(make):
    rows, columns = make.size(3), make.size(4)
    yield make.randn(columns)
    yield make.randn(columns, 2)
    yield make.randn(rows, columns)
    yield make.randn(2, rows, columns)
"""


@pytest.mark.parametrize("quick", [True, False])
def test_each_size_is_varied_in_a_sample_that_has_it(make_subject: MakeSubject, quick: bool) -> None:
    sized = of(make_subject(SIZES_OF_ITS_OWN, quick=quick), Family.SIZE, Family.EMPTY)
    assert shapes(sized["sample 1, size 2 as 17"]) == [(17,)]
    assert shapes(sized["sample 3, size 1 as 17"]) == [(17, 4)]
    assert not {"sample 3, size 2 as 17", "sample 4, size 1 as 17"} & set(sized)


@pytest.mark.parametrize("quick", [True, False])
def test_every_small_sample_is_tried_with_each_size_as_0_and_1(make_subject: MakeSubject, quick: bool) -> None:
    sized = of(make_subject(SIZES_OF_ITS_OWN, quick=quick), Family.SIZE, Family.EMPTY)
    for size in (0, 1):
        assert shapes(sized[f"sample 2, size 2 as {size}"]) == [(size, 2)]
        assert shapes(sized[f"sample 4, size 1 as {size}"]) == [(2, size, 4)]
        assert shapes(sized[f"sample 4, size 2 as {size}"]) == [(2, 3, size)]


@pytest.mark.parametrize("quick", [True, False])
def test_dimensions_of_every_small_sample_differ_from_each_other(make_subject: MakeSubject, quick: bool) -> None:
    samples = [f"make.randn({sizes}), make.randn({sizes})" for sizes in ("3", "4, 5", "2, 4, 5")]
    unequal = of(make_subject(operator("x: Tensor, y: Tensor", "x + y", *samples), quick=quick), Family.UNEQUAL)
    assert {name.partition(",")[0] for name in unequal} == {"sample 1", "sample 2", "sample 3"}


def test_a_case_records_the_size_that_it_varies(asked: Subject) -> None:
    sized = of(asked, Family.SIZE, Family.EMPTY)
    for size, family in ((0, Family.EMPTY), (1, Family.SIZE), (7, Family.SIZE), (33, Family.SIZE)):
        case = sized[f"sample 1, size 1 as {size}"]
        assert case.family is family
        assert case.size == ("sample 1, size 1", size)
    two = [case for name, case in sized.items() if " and " in name]
    assert two
    assert {case.size for case in two} == {None}


def test_sizes_that_samples_reject_or_that_are_too_large_are_dropped(asked: Subject) -> None:
    names = of(asked, Family.SIZE, Family.EMPTY)
    assert "sample 1, size 1 as 8" in names
    assert "sample 1, size 1 as 9" not in names
    assert "sample 1, size 1 as 4099" not in names
    assert "sample 1, size 1 as 6" not in names  # the sample's own size
    assert all(sum(tensor.numel() for tensor in derive.tensors(case.arguments)) <= 2**21 for case in names.values())


def test_a_size_that_would_be_too_large_is_never_drawn(make_subject: MakeSubject) -> None:
    subject = make_subject("""
@library.op
def wide(x: Tensor) -> Tensor:
    return x + 1

@wide.samples
def _(make):
    x = make.randn(11, 11, 3)
    drawn.append(x.numel())
    yield x

drawn = []
""")
    assert len(subject.varied) > 20
    assert max(subject.op.reference.__globals__["drawn"]) <= 2**21
    with pytest.raises(SpecError, match=r"a tensor of shape \(4099, 4099\) has more than 2097152 elements"):
        Make(most_elements=2**21, literals={16: 4099}).randn(16, 16)


def test_no_more_sizes_are_drawn_when_the_time_is_over(
    make_subject: MakeSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opwright.checker.cases.sizes._ALL_SECONDS", 0.0)
    subject = make_subject(SIZES_OF_ITS_OWN, quick=True)
    assert not [name for name in of(subject, Family.SIZE, Family.EMPTY) if ", size " in name]


def test_literal_sizes_are_replaced_everywhere(written: Subject) -> None:
    sized = of(written, Family.SIZE, Family.EMPTY)
    assert shapes(sized["sample 1, size 5 as 9"]) == [(12, 9), (9,)]
    assert shapes(sized["sample 2, size 5 as 9"]) == [(70, 9), (70,)]
    assert shapes(sized["sample 1, size 12 as 33"]) == [(33, 5), (5,)]
    assert "sample 2, size 12 as 33" not in sized  # it contains no 12
