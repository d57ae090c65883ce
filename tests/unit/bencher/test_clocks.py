from __future__ import annotations

import time

import pytest
import torch

from opwright.bencher.clocks import CpuClock, Elapsed, clock_of, cold_clock_of


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


def test_two_parts_of_a_block_add_up() -> None:
    assert Elapsed(1.0, 2.0, 3.0, 4.0) + Elapsed(10.0, 20.0, 30.0, 40.0) == Elapsed(11.0, 22.0, 33.0, 44.0)
    assert Elapsed(1.0, 2.0) + Elapsed(10.0, 20.0) == Elapsed(11.0, 22.0, None)


def test_a_processor_has_no_clock_for_a_flushed_cache() -> None:
    assert cold_clock_of("cpu") is None


CYCLES = 20_000_000  # about 10 ms


@pytest.mark.needs("cuda")
def test_the_clock_of_a_gpu_is_one_of_events() -> None:
    elapsed = clock_of("cuda:0").elapsed(lambda: torch.cuda._sleep(CYCLES))
    assert elapsed.wall > 1e-3
    assert elapsed.host is not None
    assert elapsed.host < elapsed.wall
    assert elapsed.processor >= 0
    assert elapsed.late == 0


@pytest.mark.needs("cuda")
@pytest.mark.parametrize("cold", [False, True])
def test_work_on_another_stream_is_timed_to_its_end(*, cold: bool) -> None:
    clock = cold_clock_of("cuda") if cold else clock_of("cuda")
    assert clock is not None
    # PyTorch makes its streams with cudaStreamNonBlocking: the default stream does not wait for them.
    other = torch.cuda.Stream()

    def aside() -> None:
        with torch.cuda.stream(other):
            torch.cuda._sleep(CYCLES)

    def joined() -> None:
        aside()
        torch.cuda.current_stream().wait_stream(other)

    expected, elapsed = clock.elapsed(joined), clock.elapsed(aside)
    assert expected.late == 0
    assert elapsed.late > expected.wall / 2
    assert elapsed.wall > expected.wall / 2
