"""Rows to be timed, and the blocks of their calls."""

from __future__ import annotations

import contextlib
import functools
import gc
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from opwright.bencher.clocks import Clock, Elapsed

# The minimum duration of a block: thousands of times the resolution of either clock and the cost of reading it.
_BLOCK_S = 200e-6
# The maximum number of states that are prepared for one block: each may hold the memory of a call.
_MOST_PREPARED = 256
_MOST_CALLS = 2**20
# The time of a shorter call depends on what ran before it (caches, clock rate). It is therefore called once, untimed,
# before each of its blocks, and takes part in the warm-up rounds.
_SHORT_S = 20e-3

# Seeded from the system's entropy: a kernel cannot predict which of its calls are verified.
_entropy = random.SystemRandom()


@dataclass(frozen=True)
class Prepared:
    """A row in which each call needs a new state, created outside the measured time.

    Attributes:
        before: creates the state.
        call: the timed function; it receives the state.
    """

    before: Callable[[], Any]
    call: Callable[[Any], object]


# A row whose calls all have the same arguments.
Repeated = Callable[[], object] | Prepared


@dataclass(frozen=True)
class Turns:
    """A row whose calls alternate between sets of arguments, so that no two calls of a block have the same contents.

    Attributes:
        sets: the call for each set of arguments.
        renew: changes the contents of all sets; called before each block, outside the measured time.
    """

    sets: Sequence[Repeated]
    renew: Callable[[], None]


Row = Repeated | Turns
Call = Callable[[], object]


@dataclass(frozen=True)
class Block:
    """Some calls of a row, timed together.

    Attributes:
        row: the row.
        calls: the number of calls.
        is_short: whether a call is so short that its time depends on what ran before it.
    """

    row: Row
    calls: int
    is_short: bool = False

    @classmethod
    def fitted(cls, row: Row, clock: Clock) -> Block:
        """A block that is long enough for the clock, or as long as the row allows."""
        for call in cls(row, len(row.sets) if isinstance(row, Turns) else 1).prepared(0):
            call()
        most = _most_calls(row)
        calls = 1
        while True:
            block = cls(row, calls)
            seconds = block.elapsed(clock).wall
            if seconds < _SHORT_S:
                # The shortest of three: a disturbed measurement would seem long enough.
                seconds = min(seconds, block.elapsed(clock).wall, block.elapsed(clock).wall)
            if seconds >= _BLOCK_S or calls >= most:
                return cls(row, calls, is_short=seconds / calls < _SHORT_S)
            # At most ten times the number of calls: the first blocks are the slowest.
            calls = min(most, max(2 * calls, round(calls * min(10.0, 1.2 * _BLOCK_S / max(seconds, 1e-9)))))

    def elapsed(self, clock: Clock) -> Elapsed:
        """The duration of all calls."""
        first = 0
        if isinstance(self.row, Turns):
            self.row.renew()
            first = _entropy.randrange(len(self.row.sets))
        self._warm(first)
        calls = self.prepared(first)
        with _no_collection():
            return clock.elapsed(functools.partial(_run, calls))

    def elapsed_with_one_kept(self, clock: Clock, turn: int, keep: Callable[[Call, object], None]) -> Elapsed:
        """The duration of all calls; passes the result of a random one to `keep` as soon as it returns.

        The contents of the arguments are not renewed.

        Args:
            clock: the clock.
            turn: the set of arguments that the kept call uses.
            keep: receives the call and its result. It is not timed.
        """
        place = _entropy.randrange(self.calls)
        self._warm(turn - place)
        calls = self.prepared(turn - place)
        results: list[object] = []

        def until_kept() -> None:
            _run(calls[:place])
            results.append(calls[place]())

        with _no_collection():
            elapsed = clock.elapsed(until_kept)
        keep(calls[place], results.pop())
        if place + 1 < self.calls:
            with _no_collection():
                elapsed += clock.elapsed(functools.partial(_run, calls[place + 1 :]))
        return elapsed

    def prepared(self, first: int) -> list[Call]:
        """The calls, ready to be timed; the first one uses the set of arguments `first`."""
        row = self.row
        if isinstance(row, Turns):
            sets = [row.sets[turn % len(row.sets)] for turn in range(first, first + self.calls)]
        else:
            sets = [row] * self.calls
        return [functools.partial(one.call, one.before()) if isinstance(one, Prepared) else one for one in sets]

    def _warm(self, first: int) -> None:
        """Make a short call once, with a set of arguments that the block does not use."""
        if self.is_short:
            _run(Block(self.row, 1).prepared(first - 1))


def _most_calls(row: Row) -> int:
    if isinstance(row, Turns):
        # One set is reserved for the call before the block.
        return max(1, len(row.sets) - 1)
    return _MOST_PREPARED if isinstance(row, Prepared) else _MOST_CALLS


def _run(calls: Iterable[Call]) -> None:
    for call in calls:
        call()


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Disable Python's garbage collection within the block."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
