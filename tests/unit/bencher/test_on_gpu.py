from __future__ import annotations

import dataclasses

import pytest

from opwright.bencher.gpu_state import GpuState
from opwright.bencher.on_gpu import OnGpu, Rates

FAST = GpuState(1980, 1980, 2619, "P0", ())
GPU = OnGpu(2_000_000, 2e12, "float32", 5e13, FAST, FAST)


def test_rates_are_computed_from_the_bytes_and_operations_of_the_cell() -> None:
    rates = Rates.of(GPU, 1_000_000, 1e-6, computes=True)
    assert (rates.bytes_per_second, rates.of_copy) == pytest.approx((1e12, 0.5))
    assert (rates.flops_per_second, rates.of_product) == pytest.approx((2e12, 0.04))


def test_a_row_without_matrix_products_has_only_a_bandwidth() -> None:
    elementwise = dataclasses.replace(GPU, flops=0, product="", multiplied_per_second=0.0)
    for rates in (
        Rates.of(elementwise, 1_000_000, 1e-6, computes=True),
        Rates.of(GPU, 1_000_000, 1e-6, computes=False),
    ):
        assert rates.bytes_per_second == pytest.approx(1e12)
        assert (rates.flops_per_second, rates.of_product) == (None, None)
    of_integers = dataclasses.replace(GPU, product="", multiplied_per_second=0.0)
    assert Rates.of(of_integers, 1_000_000, 1e-6, computes=True).of_product is None


@pytest.mark.parametrize(("after", "slowed_down"), [(1980, False), (1783, False), (1781, True)])
def test_a_clock_that_dropped_by_more_than_10_percent_is_reported(after: int, *, slowed_down: bool) -> None:
    assert dataclasses.replace(GPU, after=dataclasses.replace(FAST, sm_mhz=after)).slowed_down is slowed_down
    assert not dataclasses.replace(GPU, before=None, after=dataclasses.replace(FAST, sm_mhz=after)).slowed_down
