from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opwright.scale.workers.latencies import Latencies

TIMES = st.lists(st.floats(1e-8, 1e5), min_size=1, max_size=60)


def counted(times: list[float]) -> Latencies:
    latencies = Latencies()
    for seconds in times:
        latencies.add(seconds)
    return latencies


@given(TIMES)
def test_percentiles_are_exact_up_to_the_width_of_a_step(times: list[float]) -> None:
    found = counted(times).percentiles()
    for name, part in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99)):
        exact = sorted(times)[math.ceil(part * len(times)) - 1]
        assert found[name] == pytest.approx(exact, rel=0.012)


@given(TIMES, TIMES)
def test_histograms_can_be_added_and_sent_as_text(some: list[float], others: list[float]) -> None:
    both = counted(some)
    both.update(Latencies.from_json(counted(others).to_json()))
    assert both.percentiles() == counted([*some, *others]).percentiles()


def test_there_are_no_percentiles_without_runs() -> None:
    assert Latencies().percentiles() == {}


def test_a_run_with_a_duration_of_zero_is_counted() -> None:
    assert counted([0.0]).percentiles()["p99"] == pytest.approx(1e-9, rel=0.012)


def test_memory_does_not_grow_with_the_number_of_runs() -> None:
    latencies = counted([1e-9 * 2 ** (number / 1000) for number in range(50_000)])
    assert len(latencies._counts) < 64 * 51
