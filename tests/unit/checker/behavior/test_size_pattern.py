from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from opwright.checker.behavior.size_pattern import SizePattern, is_tail
from opwright.checker.cases.case import Case, Family
from opwright.checker.kinds import Kind
from opwright.checker.verdict import Failure

SIZES = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 128, 4096, 4099}


def fault(kind: Kind, size: int) -> Failure:
    return Failure(kind, f"size 1 as {size}", "f(x)", "got", "expected")


def case(size: int | None, name: str = "size 1") -> Case:
    return Case(f"{name} as {size}", Family.SIZE, {}, size=None if size is None else (name, size))


def found(right: set[int], wrong: set[int], kind: Kind = Kind.SIZE) -> list[Failure]:
    pattern = SizePattern()
    for size in right:
        pattern.add(case(size), None)
    for size in wrong:
        pattern.add(case(size), fault(kind, size))
    return list(pattern.faults())


@pytest.mark.parametrize("width", [4, 8, 16, 32, 64])
def test_sizes_wrong_except_at_multiples_of_a_vector_width_are_a_vector_tail(width: int) -> None:
    wrong = {size for size in SIZES if size % width}
    assert is_tail(SIZES - wrong, wrong)
    (fault,) = found(SIZES - wrong, wrong)
    assert (fault.kind, fault.case) == (Kind.TAIL, "size 1 as 1")
    # The elements before the first whole vector may be right.
    small = {size for size in SIZES if size < width}
    assert is_tail(SIZES - wrong | small, wrong - small)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (set(), SIZES),  # every size is wrong
        ({40}, SIZES - {40}),  # only the size of the sample is right
        ({16, 64}, {8, 9, 17, 32}),  # some multiples are wrong
        ({8, 16, 17, 64}, {9, 33}),  # a remainder is right
        ({8}, {9, 17}),  # one right size shows no pattern
        ({1, 2, 4, 8, 16}, {4096, 4099}),  # only large sizes are wrong
    ],
)
def test_other_patterns_of_sizes_are_not_a_vector_tail(right: set[int], wrong: set[int]) -> None:
    assert not is_tail(right, wrong)
    (fault,) = found(right, wrong)
    assert (fault.kind, fault.case) == (Kind.SIZE, f"size 1 as {min(wrong)}")


def test_faults_only_in_the_last_elements_are_a_vector_tail() -> None:
    (fault,) = found({40}, {33, 65}, Kind.TAIL)
    assert fault.kind is Kind.TAIL


@given(sizes=st.sets(st.integers(1, 4096), min_size=1))
def test_there_is_no_tail_if_no_multiple_of_a_vector_width_is_right(sizes: set[int]) -> None:
    assert not is_tail(set(), sizes)


def test_each_size_has_its_own_fault() -> None:
    pattern = SizePattern()
    for name, size in (("size 1", 9), ("size 1", 17), ("size 2", 3)):
        pattern.add(case(size, name), fault(Kind.SIZE, size))
    assert [one.case for one in pattern.faults()] == ["size 1 as 9", "size 1 as 3"]


def test_only_faults_of_a_size_wait_for_the_other_sizes() -> None:
    pattern = SizePattern()
    assert pattern.holds(case(9), fault(Kind.SIZE, 9))
    assert pattern.holds(case(9), fault(Kind.TAIL, 9))
    assert not pattern.holds(case(9), fault(Kind.RESULT_TYPE, 9))
    assert not pattern.holds(case(None), fault(Kind.SIZE, 9))
    pattern.add(case(None), fault(Kind.SIZE, 9))
    pattern.add(case(9), fault(Kind.RESULT_TYPE, 9))
    assert list(pattern.faults()) == []
