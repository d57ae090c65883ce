from __future__ import annotations

import hypothesis.strategies as st
import torch
from hypothesis import given

from opwright.checker.cases.case import Case, Family
from opwright.checker.cases.shapes import ranks, unequal
from tests.unit.checker.cases.conftest import shapes


def made(case: Case, variations: object) -> dict[str, Case]:
    return {one.what: one.of(case) for one in variations}  # type: ignore[attr-defined]


def of_sizes(**sizes: tuple[int, ...]) -> Case:
    return Case("sample 1", Family.SAMPLE, {name: torch.randn(size) for name, size in sizes.items()})


def test_accidentally_equal_dimensions_become_unequal_alone_and_together() -> None:
    case = of_sizes(x=(4, 4), y=(4, 7))
    found = {what: shapes(one) for what, one in made(case, unequal(case)).items()}
    assert found["dimension 0 of x one longer"] == [(5, 4), (4, 7)]
    assert found["dimension 1 of x one shorter"] == [(4, 3), (4, 7)]
    assert found["dimension 1 of x and dimension 0 of y one longer"] == [(4, 5), (5, 7)]
    assert found["dimension 1 of x and dimension 0 of y one shorter"] == [(4, 3), (3, 7)]
    assert found["dimension 0 of x and dimension 1 of x one longer"] == [(5, 5), (4, 7)]
    # Dimensions of different sizes do not vary together.
    assert "dimension 0 of x and dimension 1 of y one longer" not in found


def test_a_longer_dimension_repeats_its_first_element_and_a_shorter_one_loses_its_last() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    case = Case("sample 1", Family.SAMPLE, {"x": x})
    found = made(case, unequal(case))
    assert found["dimension 1 of x one longer"].arguments["x"].tolist() == [[0, 1, 2, 0], [3, 4, 5, 3]]
    assert found["dimension 0 of x one shorter"].arguments["x"].tolist() == [[0, 1, 2]]
    assert {one.family for one in found.values()} == {Family.UNEQUAL}
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_no_dimension_is_shortened_to_zero() -> None:
    case = of_sizes(x=(1, 3), y=(0, 3))
    for one in made(case, unequal(case)).values():
        assert shapes(one)[0][0] >= 1
        assert shapes(one)[1][0] == 0


@given(rank=st.integers(0, 8), other=st.integers(0, 8))
def test_all_ranks_up_to_eight_are_tried(rank: int, other: int) -> None:
    case = of_sizes(x=(2,) * rank, y=(1,) * other)
    found = {what: shapes(one) for what, one in made(case, ranks(case)).items()}
    assert found["all tensors with one element"] == [(), ()]
    assert found["all tensors flattened"] == [(2**rank,), (1,)]
    for higher in range(max(rank, other) + 1, 9):
        assert found[f"all tensors with {higher} dimensions"] == [
            (1,) * (higher - rank) + (2,) * rank,
            (1,) * higher,
        ]
    assert not [what for what in found if "with 9 dimensions" in what]
    stacked = "all tensors with a new first dimension of two"
    assert (stacked in found) == (rank > 0 and other > 0)
    if stacked in found:
        assert found[stacked] == [(2,) * (rank + 1), (2, *(1,) * other)]
        assert found["all tensors with a new last dimension of two"] == [(2,) * (rank + 1), (*(1,) * other, 2)]


def test_the_two_rows_of_a_new_first_dimension_differ() -> None:
    case = of_sizes(x=(3, 4))
    x = made(case, ranks(case))["all tensors with a new first dimension of two"].arguments["x"]
    assert not torch.equal(x[0], x[1])


def test_a_case_without_tensor_elements_has_no_other_ranks() -> None:
    assert list(ranks(of_sizes(x=(0, 3)))) == []
    assert list(ranks(Case("sample 1", Family.SAMPLE, {"n": 3}))) == []


def test_an_empty_tensor_keeps_its_rank_next_to_others() -> None:
    case = of_sizes(x=(3, 2), empty=(0, 2))
    for one in made(case, ranks(case)).values():
        assert one.arguments["empty"].shape == (0, 2)
