from __future__ import annotations

import math
import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from opwright.bundle.compare.deviation import deviation, deviations, why_infinite
from opwright.bundle.compare.golden import Golden

NAN, INF = math.nan, math.inf
NUMBERS = st.lists(st.floats(allow_nan=True, allow_infinity=True, width=32), max_size=6)


def of(*numbers: float, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.tensor(numbers, dtype=dtype)


@given(NUMBERS, st.floats(0, 1e3))
def test_equal_outputs_do_not_deviate_whatever_their_values(numbers: list[float], scale: float) -> None:
    assert deviation(of(*numbers), of(*numbers), torch.full((len(numbers),), scale)) == 0


@given(
    st.lists(st.tuples(st.floats(-1e3, 1e3, width=32), st.floats(0, 1e3, width=32)), min_size=1),
    st.floats(-1e3, 1e3, width=32),
)
def test_the_deviation_is_the_largest_difference_relative_to_the_scale_of_its_element(
    elements: list[tuple[float, float]], added: float
) -> None:
    golden, scale = of(*(number for number, _ in elements)), of(*(scale for _, scale in elements))
    output = golden + added
    gaps = (output.double() - golden.double()).abs().tolist()
    relative = [gap / one if one else INF for gap, one in zip(gaps, scale.tolist(), strict=True) if gap]
    assert deviation(output, golden, scale) == pytest.approx(max(relative, default=0))


@pytest.mark.parametrize(
    ("output", "golden", "found"),
    [
        (of(1, 1.5), of(1, 2), 0.25),
        (of(1, 1.5e-9), of(1, 1e-9), 0.5),
        (of(NAN, 1), of(NAN, 2), 0.5),
        (of(INF, -INF, 1), of(INF, -INF, 1), 0),
        (of(1), of(NAN), INF),
        (of(NAN), of(1), INF),
        (of(INF), of(1), INF),
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
def test_nan_equals_only_nan_and_an_infinity_only_itself(output: Tensor, golden: Tensor, found: float) -> None:
    scale = golden.to(torch.complex128).abs().float()
    assert deviation(output, golden, scale) == pytest.approx(found)


def two() -> Golden:
    return Golden((), (of(1), of(2)), (of(1), of(2)), "sample 0")


def test_each_output_has_a_deviation_and_a_missing_one_deviates_infinitely() -> None:
    assert deviations([of(1.1), of(2.1)], two()) == pytest.approx([0.1, 0.05])
    assert deviations([of(1)], two()) == [INF, INF]


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        ([of(1)], "1 outputs instead of 2"),
        ([of(1), of(2, 3)], r"output 1: float32 \(2,\) instead of float32 \(1,\)"),
        ([of(NAN), of(2)], "output 0: NaNs, infinities or zeros are at different positions"),
        ([of(1), of(2)], "^$"),
    ],
)
def test_a_deviation_that_no_tolerance_covers_is_described(outputs: list[Tensor], words: str) -> None:
    assert re.search(words, why_infinite(outputs, two()))
