from __future__ import annotations

import time

import pytest

from opwright.bencher.clocks import CpuClock, clock_of


def test_wall_time_passes_while_the_process_sleeps_and_processor_time_does_not() -> None:
    elapsed = clock_of("cpu").elapsed(lambda: time.sleep(0.2))
    assert elapsed.wall >= 0.2
    assert elapsed.processor < 0.1


def test_processor_time_passes_while_the_process_computes() -> None:
    def compute() -> None:
        started = time.process_time()
        while time.process_time() - started < 0.02:
            pass

    assert CpuClock().elapsed(compute).processor >= 0.02


def test_replacing_the_functions_of_time_does_not_change_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    sleep = time.sleep
    for name in ("perf_counter", "perf_counter_ns", "process_time_ns", "monotonic"):
        monkeypatch.setattr(time, name, lambda: 0)
    assert clock_of("cpu").elapsed(lambda: sleep(0.01)).wall >= 0.01


@pytest.mark.needs("cuda")
def test_the_clock_of_a_gpu_is_one_of_events() -> None:
    elapsed = clock_of("cuda:0").elapsed(lambda: None)
    assert elapsed.wall >= 0
    assert elapsed.processor >= 0
