"""Times several functions in rounds.

    from opwright.bencher.timer import measure

    timings = measure({"eager": lambda: torch.add(x, y), "in place": lambda: x.add_(y)})
    timings["in place"].median, timings["in place"].ratio(timings["eager"]).median

`torch.utils.benchmark.Timer` measures one statement after the other, so a change in the machine's load looks like a
difference between them. Here every round times all rows, so that ratios are valid on a noisy machine. As in that class,
calls are timed in blocks that are long for the clock, the number of threads is set with
`torch.utils.benchmark.set_torch_threads`, and the results are medians and quartiles.
"""

from __future__ import annotations

import dataclasses
import functools
import random
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from opwright.bencher.clocks import Clock, Elapsed, clock_of, cold_clock_of, seconds_now
from opwright.bencher.rows import Block
from opwright.bencher.stopping import SpreadRule, StoppingRule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opwright.bencher.rows import Call, Row

Name = TypeVar("Name", bound=str)

# Seeded from the system's entropy: a kernel cannot predict which of its calls are verified.
_entropy = random.SystemRandom()


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
        ended: why the rounds stopped.
        processor_times: the processor time of one call in each round, over all threads of the process, in seconds.
        host_times: on a GPU, the time after which one call returned, in each round, in seconds.
        late_times: on a GPU, the part of `times` in which only streams were busy that the current one ignores.
        cold_times: on a GPU, the time of a single call with a flushed L2 cache, in each round, in seconds.
    """

    times: tuple[float, ...]
    calls: int
    ended: str
    processor_times: tuple[float, ...] = ()
    host_times: tuple[float, ...] = ()
    late_times: tuple[float, ...] = ()
    cold_times: tuple[float, ...] = ()

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

    @functools.cached_property
    def processor(self) -> Spread | None:
        """The median and the quartiles of the processor times, in seconds; None if they were not measured."""
        return Spread.of(self.processor_times) if self.processor_times else None

    @functools.cached_property
    def host(self) -> Spread | None:
        """The median and the quartiles of the times after which a call returned; None if it was not on a GPU."""
        return Spread.of(self.host_times) if self.host_times else None

    @functools.cached_property
    def cold(self) -> Spread | None:
        """The median and the quartiles of the times with a flushed cache, in seconds; None if there are none."""
        return Spread.of(self.cold_times) if self.cold_times else None

    @property
    def is_late(self) -> bool:
        """Whether, in most rounds, other streams were still busy after the current one had finished."""
        return bool(self.late_times) and statistics.median(self.late_times) > 0

    @property
    def is_launching(self) -> bool:
        """Whether, on a GPU, calls take half of their time to return: launches dominate the time, not the work."""
        return self.host is not None and self.host.median >= self.median / 2

    @property
    def processors(self) -> float | None:
        """The number of busy processors: processor time divided by wall time, the median over the rounds."""
        if not self.processor_times:
            return None
        return statistics.median(cpu / wall for cpu, wall in zip(self.processor_times, self.times, strict=True))

    def ratios(self, to: Timing) -> tuple[float, ...]:
        """The times divided by those of another row of the same measurement, round by round."""
        return tuple(mine / theirs for mine, theirs in zip(self.times, to.times, strict=True))

    def ratio(self, to: Timing) -> Spread:
        """The median and the quartiles of `ratios`."""
        return Spread.of(self.ratios(to))


class Inspector(Protocol[Name]):
    """Verifies calls from timed blocks of rows that are `Turns` over the same sets of arguments."""

    def wants(self, rounds: int) -> bool:
        """Whether to inspect the next round; `rounds` have passed."""

    def begin(self) -> int:
        """Change the contents of the sets for a round to inspect; returns the number of the set whose calls to keep."""

    def order(self, names: Sequence[Name]) -> list[Name]:
        """The order in which such a round times the rows."""

    def keeps(self, name: Name) -> bool:
        """Whether a call of this row is kept."""

    def keep(self, name: Name, call: Call, result: object) -> None:
        """Receive a call from a block, and its result."""

    def failed(self, name: Name, error: Exception) -> None:
        """Record that a call of this row raised an exception; the row is not timed any more."""


def measure(
    rows: Mapping[Name, Row],
    *,
    rule: StoppingRule | None = None,
    device: str = "cpu",
    warm_up: int = 3,
    on_round: Callable[[], None] = lambda: None,
    inspector: Inspector[Name] | None = None,
    cold: bool = False,
) -> dict[Name, Timing]:
    """Time every row in each round, in a random order.

    Args:
        rows: what to time, by name. The measured time includes freeing the results.
        rule: when to stop; by default when the medians are stable, or after two seconds.
        device: `cpu` or `cuda`; selects the clock.
        warm_up: the number of uncounted rounds after a first call of each row (in which compilers run). Rows with long
            calls take no part in them.
        on_round: called between the rounds, outside the measured time.
        inspector: verifies calls of some rounds, and of one uncounted round after the last.
        cold: on a GPU, also time a single call of each row with a flushed L2 cache in each round.

    Returns:
        The timing of each row, with one time per round.
    """
    stop = rule or SpreadRule()
    runs = _Runs[Name](clock_of(device), cold_clock_of(device) if cold else None, inspector)
    for name, row in rows.items():
        runs.fit(name, row)
    for _ in range(warm_up):
        for name, block in list(runs.blocks.items()):
            if block.is_short:
                runs.elapsed(name)
    shuffle = random.Random(0).shuffle  # noqa: S311  an order, not a secret
    times: dict[Name, list[float]] = {name: [] for name in rows}
    elapsed: dict[Name, list[Elapsed]] = {name: [] for name in rows}
    cold_times: dict[Name, list[float]] = {name: [] for name in rows}
    started = seconds_now()
    ended, rounds = "", 0
    while runs.blocks and not ended:
        order = list(runs.blocks)
        shuffle(order)
        warm, flushed = runs.round(order, inspected=inspector is not None and inspector.wants(rounds))
        for name, found in warm.items():
            times[name].append(found.wall / runs.calls[name])
            elapsed[name].append(found)
        for name, found in flushed.items():
            cold_times[name].append(found.wall)
        rounds += 1
        on_round()
        if runs.blocks:
            ended = stop.ended([times[name] for name in runs.blocks], seconds_now() - started)
    if inspector is not None:
        runs.round(list(runs.blocks), inspected=True)
    return {name: _timing(elapsed[name], runs.calls[name], ended, cold_times[name]) for name in runs.blocks}


def _timing(elapsed: Sequence[Elapsed], calls: int, ended: str, cold_times: Sequence[float]) -> Timing:
    """The timing of a row, from the durations of its blocks."""
    host_times = tuple(block.host / calls for block in elapsed if block.host is not None)
    return Timing(
        times=tuple(block.wall / calls for block in elapsed),
        calls=calls,
        ended=ended,
        processor_times=tuple(block.processor / calls for block in elapsed),
        host_times=host_times,
        late_times=tuple(block.late / calls for block in elapsed) if host_times else (),
        cold_times=tuple(cold_times),
    )


class _Runs(Generic[Name]):
    """The blocks that are timed in each round; a row that raises an exception is removed."""

    def __init__(self, clock: Clock, cold_clock: Clock | None, inspector: Inspector[Name] | None) -> None:
        self.blocks: dict[Name, Block] = {}
        self.calls: dict[Name, int] = {}
        self._clock = clock
        self._cold_clock = cold_clock
        self._inspector = inspector

    def fit(self, name: Name, row: Row) -> None:
        """Determine how many calls of a row make up a block."""
        try:
            self.blocks[name] = Block.fitted(row, self._clock)
        except Exception as error:
            self._failed(name, error)
        else:
            self.calls[name] = self.blocks[name].calls

    def elapsed(self, name: Name, turn: int | None = None, *, cold: bool = False) -> Elapsed | None:
        """The duration of a block, or of one call if `cold`; None if it raised.

        One call is kept if `turn` is given.
        """
        block, clock, inspector = self.blocks[name], self._clock, self._inspector
        if cold and self._cold_clock is not None:
            block, clock = dataclasses.replace(block, calls=1), self._cold_clock
        try:
            if turn is None or inspector is None:
                return block.elapsed(clock)
            return block.elapsed_with_one_kept(clock, turn, functools.partial(inspector.keep, name))
        except Exception as error:
            self._failed(name, error)
            return None

    def round(self, order: list[Name], *, inspected: bool) -> tuple[dict[Name, Elapsed], dict[Name, Elapsed]]:
        """The duration of each row's block, and that of a call with a flushed cache if there is a clock for it."""
        if self._cold_clock is None:
            return self._pass(order, inspected=inspected), {}
        # This also detects a kernel that is right in only one of the two kinds of blocks.
        is_cold_inspected = bool(_entropy.randrange(2))
        warm = self._pass(order, inspected=inspected and not is_cold_inspected)
        left = [name for name in order if name in self.blocks]
        return warm, self._pass(left, inspected=inspected and is_cold_inspected, cold=True)

    def _pass(self, order: list[Name], *, inspected: bool, cold: bool = False) -> dict[Name, Elapsed]:
        """The duration of each row's block, in this order."""
        turn = None
        if inspected and self._inspector is not None:
            turn = self._inspector.begin()
            order = self._inspector.order(order)
        found: dict[Name, Elapsed] = {}
        for name in order:
            kept = turn is not None and self._inspector is not None and self._inspector.keeps(name)
            elapsed = self.elapsed(name, turn if kept else None, cold=cold)
            if elapsed is not None:
                found[name] = elapsed
        return found

    def _failed(self, name: Name, error: Exception) -> None:
        if self._inspector is None:
            raise error
        self.blocks.pop(name, None)
        self._inspector.failed(name, error)
