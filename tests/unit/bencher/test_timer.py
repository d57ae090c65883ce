from __future__ import annotations

import functools
import gc
import statistics
from collections import Counter
from collections.abc import Callable, Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from opwright.bencher.clocks import Elapsed
from opwright.bencher.rows import Prepared, Turns
from opwright.bencher.stopping import RoundsRule
from opwright.bencher.timer import Spread, Timing, measure

NUMBERS = st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=40)


def work() -> float:
    """Takes long enough that a block needs few calls."""
    return sum(float(number) for number in range(3000))


@given(NUMBERS)
def test_the_median_of_a_spread_is_between_its_quartiles(numbers: list[float]) -> None:
    spread = Spread.of(numbers)
    low, high = spread.quartiles
    assert spread.median == pytest.approx(statistics.median(numbers))
    assert min(numbers) <= low <= spread.median <= high <= max(numbers)


def test_ratios_are_computed_round_by_round() -> None:
    slow, quick = Timing((2.0, 8.0, 6.0), 1, ""), Timing((1.0, 2.0, 3.0), 1, "")
    assert slow.ratios(quick) == (2.0, 4.0, 2.0)
    assert slow.ratio(quick).median == 2.0
    assert slow.ratio(slow) == Spread(1.0, (1.0, 1.0))
    assert (quick.median, quick.quartiles) == (2.0, (1.5, 2.5))


def test_every_round_times_every_row_and_warm_up_is_not_counted() -> None:
    timings = measure({"one": work, "two": work}, rule=RoundsRule(7), warm_up=2)
    assert list(timings) == ["one", "two"]
    for timing in timings.values():
        assert len(timing.times) == 7
        assert all(seconds > 0 for seconds in timing.times)
        assert timing.ended == "7 rounds"


def test_each_round_calls_the_rows_in_a_new_order() -> None:
    calls: list[str] = []
    rounds: list[list[str]] = []

    def row(name: str) -> float:
        calls.append(name)
        return work()

    def on_round() -> None:
        rounds.append(list(dict.fromkeys(calls)))
        calls.clear()

    rows = {name: lambda name=name: row(name) for name in ("a", "b", "c")}
    measure(rows, rule=RoundsRule(12), warm_up=0, on_round=on_round)
    assert all(sorted(order) == ["a", "b", "c"] for order in rounds)
    assert len({tuple(order) for order in rounds[1:]}) > 1  # before the first round, the block sizes are fitted


class SimulatedClock:
    """A clock that only calls of `wait` advance, independent of the machine."""

    def __init__(self) -> None:
        self.now = 0.0

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def elapsed(self, block: Callable[[], None]) -> Elapsed:
        started = self.now
        block()
        return Elapsed(self.now - started, 2 * (self.now - started))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimulatedClock:
    simulated = SimulatedClock()
    monkeypatch.setattr("opwright.bencher.timer.clock_of", lambda device: simulated)
    return simulated


def test_a_block_is_long_enough_for_the_clock(clock: SimulatedClock) -> None:
    rows = {"short": lambda: clock.wait(1e-6), "long": lambda: clock.wait(1e-3)}
    timings = measure(rows, rule=RoundsRule(3))
    assert 200 <= timings["short"].calls <= 400
    assert timings["long"].calls == 1
    assert (timings["short"].median, timings["long"].median) == pytest.approx((1e-6, 1e-3))


def test_a_prepared_state_is_used_once_and_not_timed(clock: SimulatedClock) -> None:
    given: list[int] = []
    used: Counter[int] = Counter()

    def before() -> int:
        clock.wait(0.005)
        given.append(len(given))
        return given[-1]

    def call(state: int) -> None:
        used[state] += 1
        clock.wait(1e-4)

    timing = measure({"row": Prepared(before, call)}, rule=RoundsRule(3))["row"]
    assert sorted(used) == given
    assert set(used.values()) == {1}
    assert timing.median == pytest.approx(1e-4)


def test_no_garbage_is_collected_during_the_measured_time() -> None:
    seen: set[bool] = set()
    between: set[bool] = set()

    def row() -> None:
        seen.add(gc.isenabled())
        work()

    measure({"row": row}, rule=RoundsRule(2), on_round=lambda: between.add(gc.isenabled()))
    assert False in seen  # calls before a block are not timed
    assert between == {True}


def test_no_rows_take_no_time() -> None:
    assert measure({}) == {}


def test_processor_time_is_measured_along_with_wall_time(clock: SimulatedClock) -> None:
    timing = measure({"row": lambda: clock.wait(1e-3)}, rule=RoundsRule(3))["row"]
    assert timing.processor_times == pytest.approx((2e-3, 2e-3, 2e-3))
    assert timing.processor == Spread.of(timing.processor_times)
    assert timing.processors == pytest.approx(2)
    assert Timing((1.0,), 1, "").processors is None


def test_the_calls_of_a_block_alternate_and_the_contents_change_before_each_block(clock: SimulatedClock) -> None:
    blocks: list[list[int]] = [[]]

    def call(number: int) -> None:
        clock.wait(1e-6)
        blocks[-1].append(number)

    sets = [functools.partial(call, number) for number in range(5)]
    timing = measure({"row": Turns(sets, lambda: blocks.append([]))}, rule=RoundsRule(8), warm_up=0)["row"]
    assert timing.calls == 4
    for block in blocks[-8:]:
        # One call before the block, untimed, and four in it: no two have the same contents.
        assert sorted(block) == [0, 1, 2, 3, 4]
    assert len({block[0] for block in blocks}) > 1


def test_a_state_of_a_row_with_turns_is_used_once(clock: SimulatedClock) -> None:
    made: list[tuple[int, int]] = []
    used: Counter[tuple[int, int]] = Counter()

    def before(number: int) -> tuple[int, int]:
        made.append((number, len(made)))
        return made[-1]

    def call(state: tuple[int, int]) -> None:
        clock.wait(1e-4)
        used[state] += 1

    sets = [Prepared(functools.partial(before, number), call) for number in range(3)]
    measure({"row": Turns(sets, lambda: None)}, rule=RoundsRule(3))
    assert sorted(used) == sorted(made)
    assert set(used.values()) == {1}


class EveryRound:
    """Inspects every round, and stores what it receives."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, int, object]] = []
        self.raised: dict[str, Exception] = {}
        self.turn = 0

    def wants(self, rounds: int) -> bool:
        return rounds >= 0

    def begin(self) -> int:
        self.turn = (self.turn + 1) % 4
        return self.turn

    def order(self, names: Sequence[str]) -> list[str]:
        return sorted(names)

    def keeps(self, name: str) -> bool:
        return name != "floor"

    def keep(self, name: str, call: Callable[[], object], result: object) -> None:
        assert callable(call)
        self.kept.append((name, self.turn, result))

    def failed(self, name: str, error: Exception) -> None:
        self.raised[name] = error


def test_a_kept_call_is_a_timed_one_and_has_the_requested_contents(clock: SimulatedClock) -> None:
    made = Counter[int]()

    def call(number: int) -> int:
        clock.wait(1e-5)
        made[number] += 1
        return number

    row = Turns([functools.partial(call, number) for number in range(4)], lambda: None)
    inspector = EveryRound()
    timings = measure({"row": row, "floor": row}, rule=RoundsRule(6), inspector=inspector)
    # One round after the last is inspected and not counted.
    assert [len(timing.times) for timing in timings.values()] == [6, 6]
    assert len(inspector.kept) == 7
    for name, turn, result in inspector.kept:
        assert (name, result) == ("row", turn)
    assert timings["row"].median == pytest.approx(1e-5)


def test_a_row_that_raises_is_dropped_and_the_others_are_timed(clock: SimulatedClock) -> None:
    calls: list[None] = []

    def fails_late() -> None:
        clock.wait(1e-3)
        calls.append(None)
        if len(calls) > 10:
            msg = "tired"
            raise ValueError(msg)

    rows = {"late": fails_late, "immediately": lambda: 1 / 0, "right": lambda: clock.wait(1e-3)}
    inspector = EveryRound()
    timings = measure(rows, rule=RoundsRule(20), inspector=inspector)
    assert list(timings) == ["right"]
    assert len(timings["right"].times) == 20
    assert {name: repr(error) for name, error in inspector.raised.items()} == {
        "late": "ValueError('tired')",
        "immediately": "ZeroDivisionError('division by zero')",
    }
    with pytest.raises(ZeroDivisionError):
        measure({"immediately": lambda: 1 / 0}, rule=RoundsRule(2))


class ColdClock:
    """A clock that reports a microsecond for each call, half of it on the host."""

    def elapsed(self, block: Callable[[], None]) -> Elapsed:
        block()
        return Elapsed(1e-6, 0.0, 5e-7)


def test_a_single_call_of_each_row_is_timed_with_a_flushed_cache(
    clock: SimulatedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opwright.bencher.timer.cold_clock_of", lambda device: ColdClock())
    row = Turns([functools.partial(clock.wait, 1e-5)] * 4, lambda: None)
    assert measure({"row": row}, rule=RoundsRule(3))["row"].cold is None
    timing = measure({"row": row}, rule=RoundsRule(3), cold=True)["row"]
    assert timing.cold_times == (1e-6, 1e-6, 1e-6)
    assert timing.median == pytest.approx(1e-5)
    assert timing.cold == Spread.of(timing.cold_times)


def test_an_inspected_round_keeps_calls_of_blocks_or_calls_with_a_flushed_cache(
    clock: SimulatedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_cold: list[bool] = []
    is_cold = False

    class Marking(ColdClock):
        def elapsed(self, block: Callable[[], None]) -> Elapsed:
            nonlocal is_cold
            is_cold = True
            found = super().elapsed(block)
            is_cold = False
            return found

    class Inspector(EveryRound):
        def begin(self) -> int:
            in_cold.clear()
            return super().begin()

    def call(number: int) -> int:
        clock.wait(1e-5)
        in_cold.append(is_cold)
        return number

    monkeypatch.setattr("opwright.bencher.timer.cold_clock_of", lambda device: Marking())
    inspector = Inspector()
    kinds: set[bool] = set()

    def keep(name: str, call: Callable[[], object], result: object) -> None:
        kinds.add(in_cold[-1])
        assert result == inspector.turn

    inspector.keep = keep  # type: ignore[method-assign]
    row = Turns([functools.partial(call, number) for number in range(4)], lambda: None)
    timing = measure({"row": row}, rule=RoundsRule(40), inspector=inspector, cold=True)["row"]
    assert len(timing.times) == len(timing.cold_times) == 40
    assert kinds == {False, True}


def test_a_row_is_late_if_other_streams_are_busy_after_most_of_its_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = iter([0.0, 1e-3, 1e-3, 1e-3] * 10)

    class GpuClock:
        def elapsed(self, block: Callable[[], None]) -> Elapsed:
            block()
            return Elapsed(2e-3, 1e-3, 5e-4, next(ends))

    monkeypatch.setattr("opwright.bencher.timer.clock_of", lambda device: GpuClock())
    timing = measure({"row": work}, rule=RoundsRule(4))["row"]
    assert (timing.calls, timing.is_late) == (1, True)
    assert timing.host == Spread.of([5e-4] * 4)
    assert not Timing((1.0, 1.0, 1.0), 1, "", late_times=(0.0, 0.0, 1e-3)).is_late
    assert not Timing((1.0,), 1, "").is_late


@pytest.mark.needs("cuda")
def test_the_gpu_is_timed_by_cuda_events() -> None:
    few, many = (torch.ones(2**size, device="cuda") for size in (10, 28))
    rows = {"few": lambda: few.add_(1), "many": lambda: many.add_(1)}
    timings = measure(rows, rule=RoundsRule(10), device="cuda")
    assert timings["many"].median > timings["few"].median > 0
