from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from opwright.bencher.cells import cells_at
from opwright.bencher.gauge import Gauge
from opwright.bencher.gpu_state import GpuState
from opwright.bencher.on_gpu import OnGpu
from opwright.bencher.stopping import RoundsRule
from tests.unit.bencher.conftest import PROJECTED, draws_of
from tests.unit.bencher.test_spot_checks import Watcher

if TYPE_CHECKING:
    from opwright.bencher.result import Cell
    from tests.unit.bencher.conftest import MakeSubject

STATE = GpuState(1980, 1980, 2619, "P0", ())


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The measurements of a gauge, in order, on a simulated GPU."""
    found: list[str] = []

    def copied() -> float:
        found.append("copy")
        return 2e12

    def multiplied(dtype: torch.dtype) -> float:
        found.append(str(dtype))
        return 5e13

    def state() -> GpuState:
        found.append("state")
        return STATE

    monkeypatch.setattr("opwright.bencher.gauge.copied_per_second", copied)
    monkeypatch.setattr("opwright.bencher.gauge.multiplied_per_second", multiplied)
    monkeypatch.setattr("opwright.bencher.gauge.gpu_state", state)
    return found


def test_each_speed_is_measured_once_and_the_state_before_and_after_each_cell(
    make_subject: MakeSubject, measured: list[str]
) -> None:
    gauge, subject = Gauge(), make_subject(PROJECTED)
    for direction, flops in (("forward", 1024), ("both", 3072)):
        before = gauge.state()
        record = gauge.record(subject, direction, before)  # type: ignore[arg-type]
        assert record == OnGpu(flops, 2e12, "float32", 5e13, STATE, STATE)
    assert sorted(measured) == ["copy", *["state"] * 4, "torch.float32"]


def test_without_matrix_products_their_speed_is_not_measured(make_subject: MakeSubject, measured: list[str]) -> None:
    subject = make_subject(PROJECTED.replace("x @ weights", "x[0, 0] * weights"))
    assert Gauge().record(subject, "forward", None) == OnGpu(0, 2e12, "", 0.0, None, STATE)
    assert "torch.float32" not in measured


def test_an_unknown_state_is_not_queried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[None] = []
    monkeypatch.setattr("opwright.bencher.gauge.gpu_state", lambda: calls.append(None))
    gauge = Gauge()
    assert (gauge.state(), gauge.state(), len(calls)) == (None, None, 1)


def test_a_cell_has_rates_only_with_a_gauge(make_subject: MakeSubject, measured: list[str]) -> None:
    subject = make_subject(PROJECTED)
    rows = {"reference": subject.op.reference, "native": lambda x, weights: x @ weights}
    found: list[Cell] = []
    for gauge in (Gauge(), None):
        found += cells_at(subject, draws_of(subject), rows, ["forward"], RoundsRule(3), Watcher(), gauge)  # type: ignore[arg-type]
    compared, plain = (cell.to_json() for cell in found)
    assert compared["gpu"]["flops"] == 1024
    assert (compared["gpu"]["before"]["sm_mhz"], compared["gpu"]["slowed_down"]) == (1980, False)
    for row in compared["rows"]:
        assert row["rates"]["bytes_per_second"] > 0
        assert (row["rates"]["of_product"] is None) is (row["name"] == "floor")
        assert row["other_streams"] is False
    assert plain["gpu"] is None
    assert not any("rates" in row for row in plain["rows"])
