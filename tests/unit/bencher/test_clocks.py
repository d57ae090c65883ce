from __future__ import annotations

import time

import pytest
import torch

from opwright.bencher.clocks import CpuClock, CudaClock, Elapsed, clock_of, cold_clock_of


def test_sleep_counts_as_wall_time_but_not_as_processor_time() -> None:
    elapsed = clock_of("cpu").elapsed(lambda: time.sleep(0.2))
    assert elapsed.wall >= 0.2
    assert elapsed.processor < 0.1


def test_computation_counts_as_processor_time() -> None:
    def compute() -> None:
        started = time.process_time()
        while time.process_time() - started < 0.02:
            pass

    assert CpuClock().elapsed(compute).processor >= 0.02


def test_replacing_functions_of_the_time_module_does_not_change_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    sleep = time.sleep
    for name in ("perf_counter", "perf_counter_ns", "process_time_ns", "monotonic"):
        monkeypatch.setattr(time, name, lambda: 0)
    assert clock_of("cpu").elapsed(lambda: sleep(0.01)).wall >= 0.01


def test_durations_add_up() -> None:
    assert Elapsed(1.0, 2.0, 3.0, 4.0) + Elapsed(10.0, 20.0, 30.0, 40.0) == Elapsed(11.0, 22.0, 33.0, 44.0)
    assert Elapsed(1.0, 2.0) + Elapsed(10.0, 20.0) == Elapsed(11.0, 22.0, None)


def test_the_cpu_has_no_clock_for_a_flushed_cache() -> None:
    assert cold_clock_of("cpu") is None


class SimulatedGpu:
    """A GPU with a current stream and another one; a launch costs the host 5 µs, a wait for an idle GPU 3 µs."""

    def __init__(self) -> None:
        self.now = 0
        self.current = self.other = 0  # when the work of each finishes

    def launch(self, nanoseconds: int, *, aside: bool = False) -> None:
        self.now += 5000
        if aside:
            self.other = max(self.now, self.other) + nanoseconds
        else:
            self.current = max(self.now, self.current) + nanoseconds

    def synchronize(self) -> None:
        self.now = max(self.now, self.current, self.other) + 3000

    def event(self, *, enable_timing: bool) -> SimulatedEvent:
        assert enable_timing
        return SimulatedEvent(self)


class SimulatedEvent:
    def __init__(self, gpu: SimulatedGpu) -> None:
        self.gpu = gpu
        self.at = 0

    def record(self, stream: str) -> None:
        assert stream == "current"
        self.at = max(self.gpu.now, self.gpu.current)

    def synchronize(self) -> None:
        self.gpu.now = max(self.gpu.now, self.at)

    def elapsed_time(self, end: SimulatedEvent) -> float:
        return (end.at - self.at) / 1e6


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> SimulatedGpu:
    simulated = SimulatedGpu()
    for name, function in {
        "_Event": simulated.event,
        "_current_stream": lambda: "current",
        "_synchronize": simulated.synchronize,
        "_wall_ns": lambda: simulated.now,
    }.items():
        monkeypatch.setattr(f"opwright.bencher.clocks.{name}", function)
    return simulated


def test_a_block_on_the_current_stream_is_timed_by_events(gpu: SimulatedGpu) -> None:
    elapsed = clock_of("cuda").elapsed(lambda: gpu.launch(40_000))
    assert (elapsed.wall, elapsed.host, elapsed.late) == pytest.approx((45e-6, 5e-6, 0))


def test_a_block_that_the_current_stream_does_not_wait_for_is_timed_to_its_end(gpu: SimulatedGpu) -> None:
    elapsed = clock_of("cuda").elapsed(lambda: gpu.launch(40_000, aside=True))
    assert (elapsed.wall, elapsed.late) == pytest.approx((45e-6, 40e-6))

    def both() -> None:
        gpu.launch(40_000, aside=True)
        gpu.launch(100_000)

    elapsed = clock_of("cuda").elapsed(both)
    assert (elapsed.wall, elapsed.late) == pytest.approx((110e-6, 0))


def test_a_wait_that_is_short_compared_with_the_block_does_not_count_as_work_on_another_stream(
    gpu: SimulatedGpu,
) -> None:
    def mostly_joined(aside: int) -> None:
        gpu.launch(100_000 + aside, aside=True)
        gpu.launch(100_000)

    short = clock_of("cuda").elapsed(lambda: mostly_joined(20_000))
    long = clock_of("cuda").elapsed(lambda: mostly_joined(80_000))
    assert short.late == 0
    assert long.late > 70e-6


def test_flushing_the_cache_is_not_part_of_the_measured_time(gpu: SimulatedGpu) -> None:
    class Flushed:
        def zero_(self) -> None:
            gpu.launch(60_000)

    elapsed = CudaClock(Flushed()).elapsed(lambda: gpu.launch(40_000))  # type: ignore[arg-type]
    assert elapsed.wall == pytest.approx(45e-6)
    # The flush finishes before the block starts: another stream would not wait for it.
    aside = CudaClock(Flushed()).elapsed(lambda: gpu.launch(40_000, aside=True))  # type: ignore[arg-type]
    assert aside.wall == pytest.approx(45e-6)


CYCLES = 20_000_000  # about 10 ms


@pytest.mark.needs("cuda")
def test_the_gpu_clock_uses_events() -> None:
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
    # PyTorch creates its streams with cudaStreamNonBlocking: the default stream does not wait for them.
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
