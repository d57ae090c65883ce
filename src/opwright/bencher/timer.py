"""Times several ways to do one thing, in turn, round after round.

    from opwright.bencher.timer import measure

    timings = measure({"eager": lambda: torch.add(x, y), "in place": lambda: x.add_(y)})
    timings["in place"].median, timings["in place"].ratio(timings["eager"]).median

`torch.utils.benchmark.Timer` times one statement, given as text, until that is done, and then the next one: what the
machine does meanwhile is then mistaken for a difference between them. Here all rows share each round, so that ratios
hold on a noisy machine. Taken over from it: blocks of calls that outlast the clock, a thread pool of a given size
(`torch.utils.benchmark.set_torch_threads`), medians and quartiles instead of means.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import torch

from opwright.bencher.stopping import SpreadRule, StoppingRule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

# A block of calls lasts at least so long: thousands of ticks of either clock, and of what reading it costs.
_BLOCK_S = 200e-6
# So many states are prepared for one block, at most: each may hold the memory of a call.
_MOST_PREPARED = 256
_MOST_CALLS = 2**20
# A shorter call depends on what ran before it, in the caches and in the clock of the processor: it is
# made once, untimed, before each of its blocks, and has rounds to warm up in.
_SHORT_S = 20e-3


@dataclass(frozen=True)
class Prepared:
    """A row whose calls need something that is made anew, untimed, for each of them.

    Attributes:
        before: makes it.
        call: what is timed; it is given what `before` made.
    """

    before: Callable[[], Any]
    call: Callable[[Any], object]


Row = Callable[[], object] | Prepared
Name = TypeVar("Name", bound=str)


@dataclass(frozen=True)
class Spread:
    """The middle of some numbers, and how far they lie apart.

    Attributes:
        median: their median.
        quartiles: a quarter of them is below the first, and a quarter is above the second.
    """

    median: float
    quartiles: tuple[float, float]

    @classmethod
    def of(cls, numbers: Sequence[float]) -> Spread:
        """The spread of one or more numbers."""
        if len(numbers) == 1:
            return cls(numbers[0], (numbers[0], numbers[0]))
        low, middle, high = statistics.quantiles(numbers, method="inclusive")
        return cls(middle, (low, high))


@dataclass(frozen=True)
class Timing:
    """What was measured of one row.

    Attributes:
        times: seconds of one call, in every round.
        calls: how many calls were timed in each round, as one block.
        ended: why there were no more rounds.
    """

    times: tuple[float, ...]
    calls: int
    ended: str

    @functools.cached_property
    def spread(self) -> Spread:
        """The median of the times, and their quartiles."""
        return Spread.of(self.times)

    @property
    def median(self) -> float:
        """The median of the times, in seconds."""
        return self.spread.median

    @property
    def quartiles(self) -> tuple[float, float]:
        """The first and the third quartile of the times, in seconds."""
        return self.spread.quartiles

    def ratios(self, to: Timing) -> tuple[float, ...]:
        """The times as parts of those of another row of the same measurement, round by round."""
        return tuple(mine / theirs for mine, theirs in zip(self.times, to.times, strict=True))

    def ratio(self, to: Timing) -> Spread:
        """The median of `ratios`, and their quartiles."""
        return Spread.of(self.ratios(to))


class Clock(Protocol):
    """Times a block of calls."""

    def seconds(self, block: Callable[[], None]) -> float:
        """How long `block` takes."""


class CpuClock:
    """The system's monotonic clock."""

    def seconds(self, block: Callable[[], None]) -> float:
        """How long `block` takes, from its first call to the return of its last."""
        started = time.perf_counter_ns()
        block()
        return (time.perf_counter_ns() - started) / 1e9


class CudaClock:
    """Two events on the current stream: the GPU's own clock, from when it reaches the first to the second.

    It begins with an idle GPU. Kernels that it runs through faster than Python starts them are therefore timed with the
    gaps between them, as a program of such calls has them.
    """

    def seconds(self, block: Callable[[], None]) -> float:
        """How long the GPU is at what `block` asks of it."""
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        first.record()
        block()
        last.record()
        last.synchronize()
        return float(first.elapsed_time(last)) / 1e3


def clock_of(device: str) -> Clock:
    """The clock for what runs on `cpu` or `cuda`."""
    return CudaClock() if device.startswith("cuda") else CpuClock()


def measure(
    rows: Mapping[Name, Row],
    *,
    rule: StoppingRule | None = None,
    device: str = "cpu",
    warm_up: int = 3,
    on_round: Callable[[], None] = lambda: None,
) -> dict[Name, Timing]:
    """Time every row in each round, in an order that is drawn anew for each.

    Args:
        rows: what to time, by name. Results are let go within the time that is taken.
        rule: when to stop; where medians are steady, or after two seconds, by default.
        device: `cpu` or `cuda`, for the clock.
        warm_up: rounds that are not counted, after a first call of each row, in which compilers run. Rows whose calls
            take long are left out of them.
        on_round: is called between the rounds.

    Returns:
        The timing of each row, with one time for each round.
    """
    stop = rule or SpreadRule()
    clock = clock_of(device)
    blocks = {name: _Block.fitted(row, clock) for name, row in rows.items()}
    order = list(blocks)
    shuffle = random.Random(0).shuffle  # noqa: S311  nobody must not guess it
    for _ in range(warm_up):
        for block in blocks.values():
            if block.is_short:
                block.seconds(clock)
    times: dict[Name, list[float]] = {name: [] for name in blocks}
    started = time.perf_counter()
    ended, next_look = "", 0.0
    while order and not ended:
        shuffle(order)
        for name in order:
            times[name].append(blocks[name].seconds(clock) / blocks[name].calls)
        on_round()
        # To look is to sort: of many quick rounds it would take more time than they do.
        rounds = len(times[order[0]])
        if rounds >= next_look:
            ended, next_look = stop.ended(times.values(), time.perf_counter() - started), 1.1 * rounds
    return {name: Timing(tuple(times[name]), block.calls, ended) for name, block in blocks.items()}


@dataclass(frozen=True)
class _Block:
    """Some calls of a row, timed as one."""

    row: Row
    calls: int
    is_short: bool

    @classmethod
    def fitted(cls, row: Row, clock: Clock) -> _Block:
        """A block that lasts long enough for the clock."""
        cls(row, 1, is_short=False).run(1)
        most = _MOST_PREPARED if isinstance(row, Prepared) else _MOST_CALLS
        calls = 1
        while True:
            block = cls(row, calls, is_short=False)
            seconds = block.seconds(clock)
            if seconds < _SHORT_S:
                # The quickest of three: one that was disturbed would pass for long enough.
                seconds = min(seconds, block.seconds(clock), block.seconds(clock))
            if seconds >= _BLOCK_S or calls >= most:
                return cls(row, calls, is_short=seconds / calls < _SHORT_S)
            # Never by more than tenfold: the first blocks are the slowest.
            calls = min(most, max(2 * calls, round(calls * min(10.0, 1.2 * _BLOCK_S / max(seconds, 1e-9)))))

    def seconds(self, clock: Clock) -> float:
        """How long the calls take together."""
        if self.is_short:
            self.run(1)
        block = self._ready(self.calls)
        with _no_collection():
            return clock.seconds(block)

    def run(self, calls: int) -> None:
        """Make some calls, untimed."""
        self._ready(calls)()

    def _ready(self, calls: int) -> Callable[[], None]:
        row = self.row
        if isinstance(row, Prepared):
            call_with, states = row.call, [row.before() for _ in range(calls)]

            def with_states() -> None:
                for state in states:
                    call_with(state)

            return with_states
        call = row

        def bare() -> None:
            for _ in itertools.repeat(None, calls):
                call()

        return bare


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Within it, Python looks for no garbage."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
