"""Times several functions next to each other, in rounds.

    from opwright.bencher.timer import measure

    timings = measure({"eager": lambda: torch.add(x, y), "in place": lambda: x.add_(y)})
    timings["in place"].median, timings["in place"].ratio(timings["eager"]).median

`torch.utils.benchmark.Timer` measures one statement after the other, so that a change of the machine's load looks like
a difference between them. Here every round times all rows, so that ratios hold on a noisy machine. As in that class,
calls are timed in blocks that are long for the clock, the number of threads is set with
`torch.utils.benchmark.set_torch_threads`, and the results are medians and quartiles.
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

# The shortest block of calls: thousands of times the resolution of either clock, and the cost of reading it.
_BLOCK_S = 200e-6
# The most states that are prepared for one block: each may hold the memory of a call.
_MOST_PREPARED = 256
_MOST_CALLS = 2**20
# The time of a shorter call depends on what ran before it (caches, clock rate): it is called once, untimed, before each
# of its blocks, and takes part in the warm-up rounds.
_SHORT_S = 20e-3


@dataclass(frozen=True)
class Prepared:
    """A row whose calls each need a new state, which is made outside the measured time.

    Attributes:
        before: makes the state.
        call: what is timed; it receives the state.
    """

    before: Callable[[], Any]
    call: Callable[[Any], object]


Row = Callable[[], object] | Prepared
Name = TypeVar("Name", bound=str)


@dataclass(frozen=True)
class Spread:
    """The median and the quartiles of some numbers.

    Attributes:
        median: their median.
        quartiles: the first and the third quartile.
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
    """The measurement of one row.

    Attributes:
        times: the time of one call in each round, in seconds.
        calls: the number of calls that were timed as one block in each round.
        ended: why the rounds ended.
    """

    times: tuple[float, ...]
    calls: int
    ended: str

    @functools.cached_property
    def spread(self) -> Spread:
        """The median and the quartiles of the times, in seconds."""
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
        """The times divided by those of another row of the same measurement, round by round."""
        return tuple(mine / theirs for mine, theirs in zip(self.times, to.times, strict=True))

    def ratio(self, to: Timing) -> Spread:
        """The median and the quartiles of `ratios`."""
        return Spread.of(self.ratios(to))


class Clock(Protocol):
    """Times a block of calls."""

    def seconds(self, block: Callable[[], None]) -> float:
        """The duration of `block`, in seconds."""


class CpuClock:
    """The system's monotonic clock."""

    def seconds(self, block: Callable[[], None]) -> float:
        """The duration of `block`, from its first call to the return of its last."""
        started = time.perf_counter_ns()
        block()
        return (time.perf_counter_ns() - started) / 1e9


class CudaClock:
    """Two CUDA events on the current stream.

    The GPU is idle at the first one. Kernels that finish before Python launches the next one are therefore timed with
    the gaps between them, as in a program that makes these calls.
    """

    def seconds(self, block: Callable[[], None]) -> float:
        """The duration of `block` on the GPU, in seconds."""
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        first.record()
        block()
        last.record()
        last.synchronize()
        return float(first.elapsed_time(last)) / 1e3


def clock_of(device: str) -> Clock:
    """The clock for `cpu` or `cuda`."""
    return CudaClock() if device.startswith("cuda") else CpuClock()


def measure(
    rows: Mapping[Name, Row],
    *,
    rule: StoppingRule | None = None,
    device: str = "cpu",
    warm_up: int = 3,
    on_round: Callable[[], None] = lambda: None,
) -> dict[Name, Timing]:
    """Time every row in each round, in a random order.

    Args:
        rows: what to time, by name. The measured time includes freeing the results.
        rule: when to stop; by default when the medians are stable, or after two seconds.
        device: `cpu` or `cuda`, for the clock.
        warm_up: the number of rounds that are not counted, after a first call of each row (in which compilers run).
            Rows whose calls take long are not part of them.
        on_round: called between the rounds, outside the measured time.

    Returns:
        The timing of each row, with one time for each round.
    """
    stop = rule or SpreadRule()
    clock = clock_of(device)
    blocks = {name: _Block.fitted(row, clock) for name, row in rows.items()}
    order = list(blocks)
    shuffle = random.Random(0).shuffle  # noqa: S311  an order, not a secret
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
        # The rule sorts the times: after every one of many short rounds, that would take longer than the rounds.
        rounds = len(times[order[0]])
        if rounds >= next_look:
            ended, next_look = stop.ended(times.values(), time.perf_counter() - started), 1.1 * rounds
    return {name: Timing(tuple(times[name]), block.calls, ended) for name, block in blocks.items()}


@dataclass(frozen=True)
class _Block:
    """Some calls of a row, timed together."""

    row: Row
    calls: int
    is_short: bool

    @classmethod
    def fitted(cls, row: Row, clock: Clock) -> _Block:
        """A block that is long enough for the clock."""
        cls(row, 1, is_short=False).run(1)
        most = _MOST_PREPARED if isinstance(row, Prepared) else _MOST_CALLS
        calls = 1
        while True:
            block = cls(row, calls, is_short=False)
            seconds = block.seconds(clock)
            if seconds < _SHORT_S:
                # The shortest of three: a disturbed one would seem long enough.
                seconds = min(seconds, block.seconds(clock), block.seconds(clock))
            if seconds >= _BLOCK_S or calls >= most:
                return cls(row, calls, is_short=seconds / calls < _SHORT_S)
            # At most ten times as many: the first blocks are the slowest.
            calls = min(most, max(2 * calls, round(calls * min(10.0, 1.2 * _BLOCK_S / max(seconds, 1e-9)))))

    def seconds(self, clock: Clock) -> float:
        """The duration of all calls, in seconds."""
        if self.is_short:
            self.run(1)
        block = self._ready(self.calls)
        with _no_collection():
            return clock.seconds(block)

    def run(self, calls: int) -> None:
        """Make some calls without timing them."""
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
    """Switch off Python's garbage collection within the block."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
