from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opwright.bencher.stopping import RoundsRule, SpreadRule, relative_error

TIMES = st.lists(st.floats(1e-6, 1), min_size=2, max_size=50)
STABLE = [1.0] * 30
WILD = [1.0, 9.0] * 15


@given(TIMES, st.floats(1e-3, 1e3))
def test_relative_error_does_not_depend_on_the_unit(times: list[float], factor: float) -> None:
    scaled = [factor * time for time in times]
    assert math.isclose(relative_error(scaled), relative_error(times), rel_tol=1e-6, abs_tol=1e-9)


def test_relative_error_is_the_interquartile_range_over_the_root_of_the_rounds() -> None:
    assert relative_error([1.0, 2.0, 3.0, 4.0, 5.0]) == pytest.approx(2 / math.sqrt(5) / 3)
    assert relative_error(STABLE) == 0


def test_a_fixed_number_of_rounds_does_not_depend_on_the_times() -> None:
    rule = RoundsRule(30)
    assert rule.ended([WILD, STABLE], 1e9) == "30 rounds"
    assert rule.ended([WILD[1:], STABLE], 1e9) == ""


def test_the_rounds_stop_when_every_row_is_stable() -> None:
    rule = SpreadRule(seconds=10, spread=0.02, rounds=20)
    assert rule.ended([STABLE, STABLE], 1) == "every median is stable to 2 %"
    assert rule.ended([STABLE, WILD], 1) == ""
    assert rule.ended([STABLE[:19]], 1) == ""


def test_the_rounds_stop_when_the_time_is_used_up_but_not_before_there_are_quartiles() -> None:
    rule = SpreadRule(seconds=2, least=5)
    assert rule.ended([WILD[:5]], 2) == "the 2 s were used up"
    assert rule.ended([WILD[:4]], 100) == ""
    assert rule.ended([WILD[:5]], 1.9) == ""


def test_a_rule_describes_itself() -> None:
    assert str(RoundsRule(7)) == "7 rounds"
    assert str(SpreadRule(seconds=0.5)) == "medians stable to 1 %, or 0.5 s"
