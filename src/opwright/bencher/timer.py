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

import functools
import random
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from opwright.bencher.clocks import Clock, Elapsed, clock_of, seconds_now
from opwright.bencher.rows import Block
from opwright.bencher.stopping import SpreadRule, StoppingRule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opwright.bencher.rows import Call, Row

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
        processor_times: the processor time of one call in each round, over all threads of the process, in seconds.
    """

    times: tuple[float, ...]
    calls: int
    ended: str
    processor_times: tuple[float, ...] = ()

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
        """The rows in the order in which such a round times them."""

    def keeps(self, name: Name) -> bool:
        """Whether a call of this row is kept."""

    def keep(self, name: Name, call: Call, result: object) -> None:
        """Receive a call from a block, and its result."""

    def failed(self, name: Name, error: Exception) -> None:
        """Record that a call of this row raised an exception; the row is no longer timed."""


def measure(
    rows: Mapping[Name, Row],
    *,
    rule: StoppingRule | None = None,
    device: str = "cpu",
    warm_up: int = 3,
    on_round: Callable[[], None] = lambda: None,
    inspector: Inspector[Name] | None = None,
) -> dict[Name, Timing]:
    """Time every row in each round, in a random order.

    Args:
        rows: what to time, by name. The measured time includes freeing the results.
        rule: when to stop; by default when the medians are stable, or after two seconds.
        device: `cpu` or `cuda`, for the clock.
        warm_up: the number of rounds that are not counted, after a first call of each row (in which compilers run).
            Rows whose calls take long are not part of them.
        on_round: called between the rounds, outside the measured time.
        inspector: verifies calls of some rounds, and of one more after the last, which is not counted.

    Returns:
        The timing of each row, with one time for each round.
    """
    stop = rule or SpreadRule()
    clock = clock_of(device)
    runs = _Runs[Name](clock, inspector)
    for name, row in rows.items():
        runs.fit(name, row)
    for _ in range(warm_up):
        for name, block in list(runs.blocks.items()):
            if block.is_short:
                runs.elapsed(name)
    shuffle = random.Random(0).shuffle  # noqa: S311  an order, not a secret
    times: dict[Name, list[float]] = {name: [] for name in rows}
    processor_times: dict[Name, list[float]] = {name: [] for name in rows}
    started = seconds_now()
    ended, rounds = "", 0
    while runs.blocks and not ended:
        order = list(runs.blocks)
        shuffle(order)
        for name, elapsed in runs.round(order, inspected=inspector is not None and inspector.wants(rounds)).items():
            times[name].append(elapsed.wall / runs.calls[name])
            processor_times[name].append(elapsed.processor / runs.calls[name])
        rounds += 1
        on_round()
        if runs.blocks:
            ended = stop.ended([times[name] for name in runs.blocks], seconds_now() - started)
    if inspector is not None:
        runs.round(list(runs.blocks), inspected=True)
    return {
        name: Timing(tuple(times[name]), runs.calls[name], ended, tuple(processor_times[name])) for name in runs.blocks
    }


class _Runs(Generic[Name]):
    """The blocks that are timed in each round; a row that raises an exception is removed."""

    def __init__(self, clock: Clock, inspector: Inspector[Name] | None) -> None:
        self.blocks: dict[Name, Block] = {}
        self.calls: dict[Name, int] = {}
        self._clock = clock
        self._inspector = inspector

    def fit(self, name: Name, row: Row) -> None:
        """Find how many calls of a row make a block."""
        try:
            self.blocks[name] = Block.fitted(row, self._clock)
        except Exception as error:
            self._failed(name, error)
        else:
            self.calls[name] = self.blocks[name].calls

    def elapsed(self, name: Name, turn: int | None = None) -> Elapsed | None:
        """The duration of a block, one call of which is kept if `turn` is given; None if it raised."""
        block, inspector = self.blocks[name], self._inspector
        try:
            if turn is None or inspector is None:
                return block.elapsed(self._clock)
            return block.elapsed_with_one_kept(self._clock, turn, functools.partial(inspector.keep, name))
        except Exception as error:
            self._failed(name, error)
            return None

    def round(self, order: list[Name], *, inspected: bool) -> dict[Name, Elapsed]:
        """The duration of each row's block."""
        turn = None
        if inspected and self._inspector is not None:
            turn = self._inspector.begin()
            order = self._inspector.order(order)
        found: dict[Name, Elapsed] = {}
        for name in order:
            kept = turn is not None and self._inspector is not None and self._inspector.keeps(name)
            elapsed = self.elapsed(name, turn if kept else None)
            if elapsed is not None:
                found[name] = elapsed
        return found

    def _failed(self, name: Name, error: Exception) -> None:
        if self._inspector is None:
            raise error
        self.blocks.pop(name, None)
        self._inspector.failed(name, error)
