from __future__ import annotations

import math
import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from opwright.bundle.compare.tolerance import difference, largest_difference, why_infinite

NAN, INF = math.nan, math.inf
NUMBERS = st.lists(st.floats(allow_nan=True, allow_infinity=True, width=32), max_size=6)


def of(*numbers: float, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.tensor(numbers, dtype=dtype)


@given(NUMBERS)
def test_what_is_equal_does_not_differ_whatever_it_holds(numbers: list[float]) -> None:
    assert difference(of(*numbers), of(*numbers)) == 0


@given(st.lists(st.floats(-1e3, 1e3, width=32), min_size=1), st.floats(-1e3, 1e3, width=32))
def test_the_difference_is_a_part_of_the_largest_golden(numbers: list[float], added: float) -> None:
    golden = of(*numbers)
    output = golden + added
    gap = float((output.double() - golden.double()).abs().max())
    magnitude = float(golden.abs().max())
    wanted = 0 if not gap else gap / magnitude if magnitude else INF
    assert difference(output, golden) == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("output", "golden", "found"),
    [
        (of(1, 1.5), of(1, 2), 0.25),
        (of(NAN, 1), of(NAN, 2), 0.5),
        (of(INF, -INF, 1), of(INF, -INF, 1), 0),
        (of(1), of(NAN), INF),
        (of(NAN), of(1), INF),
        (of(INF), of(-INF), INF),
        (of(1e30), of(INF), INF),
        (of(1e-30), of(0), INF),
        (of(), of(), 0),
        (of(1), of(1, 1), INF),
        (of(1), of(1, dtype=torch.float64), INF),
        (of(3, dtype=torch.int64), of(4, dtype=torch.int64), 0.25),
        (of(1, dtype=torch.bool), of(0, dtype=torch.bool), INF),
        (of(1, dtype=torch.complex64), of(1, dtype=torch.complex64) * 1j, math.sqrt(2)),
    ],
)
def test_nan_is_equal_to_nan_and_an_infinity_to_itself_alone(output: Tensor, golden: Tensor, found: float) -> None:
    assert difference(output, golden) == pytest.approx(found)


def test_the_largest_of_several_outputs_counts_and_a_missing_one_is_infinite() -> None:
    goldens = [of(1), of(2)]
    assert largest_difference([of(1.1), of(2.1)], goldens) == pytest.approx(0.1)
    assert largest_difference([of(1)], goldens) == INF


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        ([of(1)], "1 outputs instead of 2"),
        ([of(1), of(2, 3)], r"output 1: float32 \(2,\) instead of float32 \(1,\)"),
        ([of(NAN), of(2)], "output 0: NaN, infinities or zeros are in other places"),
        ([of(1), of(2)], "^$"),
    ],
)
def test_what_no_tolerance_covers_is_told_in_words(outputs: list[Tensor], words: str) -> None:
    assert re.search(words, why_infinite(outputs, [of(1), of(2)]))
