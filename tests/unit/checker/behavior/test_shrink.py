"""Tests of shrinking a failing case to a smaller one that fails in the same way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from opwright.checker.behavior.shrink import smallest
from opwright.checker.cases.case import Case, Family
from opwright.checker.cases.samples import elements_in

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_TRIALS = 60
# Cases with up to this many elements are written out in full.
SMALL = 6


def case(*shapes: tuple[int, ...], family: Family = Family.EDGE) -> Case:
    tensors = [torch.arange(float(torch.Size(shape).numel())).view(shape) for shape in shapes]
    return Case("a case", family, {f"x{at}": tensor for at, tensor in enumerate(tensors)}, argument="x0")


def shapes(given: Case) -> list[tuple[int, ...]]:
    return [tuple(tensor.shape) for tensor in given.arguments.values()]


class Fails:
    """A condition under which a case fails, with a count of its calls."""

    def __init__(self, condition: Callable[[Case], bool]) -> None:
        self.condition = condition
        self.asked: list[Case] = []

    def __call__(self, given: Case) -> bool:
        self.asked.append(given)
        return self.condition(given)


def holds(number: float) -> Callable[[Case], bool]:
    """A condition: the first argument contains `number`."""
    return lambda given: bool((given.arguments["x0"] == number).any())


def test_dimensions_of_one_size_are_cut_together() -> None:
    def is_product(given: Case) -> bool:
        one, other = given.arguments.values()
        return bool(one.shape[1] == other.shape[0])

    found = smallest(case((32, 24), (24, 16)), is_product)
    (_, inner), (same, _) = shapes(found)
    assert inner == same
    assert elements_in(found.arguments) <= SMALL


def test_the_family_and_argument_are_kept_and_the_name_says_made_smaller() -> None:
    found = smallest(case((64,), family=Family.SPECIAL), holds(5))
    assert (found.family, found.argument) == (Family.SPECIAL, "x0")
    assert found.name.startswith("a case, made smaller (trial ")


@pytest.mark.parametrize(
    "given",
    [
        *(case((64,), family=one) for one in (Family.SAMPLE, Family.SIZE, Family.EMPTY, Family.UNEQUAL, Family.FAR)),
        case((2, 3)),
    ],
    ids=lambda given: given.family.value,
)
def test_a_case_that_varies_a_size_or_is_short_is_not_made_smaller(given: Case) -> None:
    fails = Fails(lambda _: True)
    assert smallest(given, fails) is given
    assert fails.asked == []


def test_no_smaller_case_is_empty() -> None:
    fails = Fails(lambda _: False)
    smallest(case((8, 1, 3), (3,)), fails)
    assert fails.asked
    assert all(size for asked in fails.asked for shape in shapes(asked) for size in shape)


def test_the_number_of_trials_is_limited_for_many_dimensions() -> None:
    fails = Fails(lambda _: False)
    smallest(case(*((size, size + 1, 2, 2) for size in range(3, 19, 2))), fails)
    assert len(fails.asked) == MOST_TRIALS


@settings(deadline=None, max_examples=60)
@given(
    sizes=st.lists(st.lists(st.integers(1, 40), max_size=3).map(tuple), min_size=1, max_size=3),
    answers=st.lists(st.booleans(), max_size=80),
)
def test_the_smallest_case_fails_and_is_not_larger_than_the_original(
    sizes: list[tuple[int, ...]], answers: list[bool]
) -> None:
    left = iter(answers)
    failed: list[Case] = [case(*sizes)]

    def condition(given: Case) -> bool:
        assert elements_in(given.arguments) < elements_in(failed[-1].arguments)
        if next(left, False):
            failed.append(given)
            return True
        return False

    fails = Fails(condition)
    found = smallest(failed[0], fails)
    assert found is failed[-1]
    assert len(fails.asked) <= MOST_TRIALS
    assert len({asked.name for asked in fails.asked}) == len(fails.asked)


@settings(deadline=None, max_examples=60)
@given(rows=st.integers(1, 64), columns=st.integers(1, 64), data=st.data())
def test_one_wrong_element_is_found_wherever_it_is(rows: int, columns: int, data: st.DataObject) -> None:
    number = data.draw(st.integers(0, rows * columns - 1))
    found = smallest(case((rows, columns)), holds(number))
    assert holds(number)(found)
    assert elements_in(found.arguments) <= SMALL
