"""Answers units whatever ends their host: the row that ends it is found by trying again alone."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from opwright.errors import MapError
from opwright.scale.rows import Answer, Failure
from opwright.scale.stopped import StoppedError
from opwright.scale.workers.worker import HostEndedError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

    from opwright.scale.rows import Row, Unit
    from opwright.scale.workers.worker import Worker

# What crashes a host twice does so again. A host that was killed may have been killed by chance; where memory runs out
# it is killed each time.
_CRASHES = 2
_KILLS = 5


class Isolation:
    """A worker that is started again when its host ends.

    Units that a host had not answered when it ended run again, one at a time. A unit of several rows that ends the host
    again is taken apart, and its rows run one at a time. A row that ends the host again has failed. So results depend
    on the units alone, not on when a host ended.

    Args:
        start: starts a worker.

    Attributes:
        restarts: how often a host ended.
    """

    def __init__(self, start: Callable[[], Worker]) -> None:
        self._start = start
        self._worker: Worker | None = None
        self._is_stopped = False
        self.restarts = 0

    @property
    def pid(self) -> int | None:
        """The number of the host's process; None while none runs."""
        return None if self._worker is None else self._worker.pid

    def answers(self, units: Iterable[Unit]) -> Iterator[list[Answer]]:
        """The answers to units, in their order, a list for each; units are taken ahead of their answers.

        Raises:
            MapError: the host does not start.
            StoppedError: `stop` was called.
        """
        waiting = iter(units)
        while (ended := (yield from self._until_it_ends(waiting))) is not None:
            self._let_go()
            for unit in ended.unanswered:
                yield self._alone(unit, ended)

    def answers_to_all(self, groups: Iterable[Sequence[Row | Failure]]) -> Iterator[list[Answer]]:
        """The answers to rows that run together, in their order; one that has failed already is its own answer.

        Raises:
            MapError: the host does not start.
            StoppedError: `stop` was called.
        """
        asked: deque[Sequence[Row | Failure]] = deque()

        def units() -> Iterator[Unit]:
            for group in groups:
                asked.append(group)
                yield [row for row in group if not isinstance(row, Failure)]

        for given in self.answers(units()):
            answers = iter(given)
            yield [Answer(failure=row) if isinstance(row, Failure) else next(answers) for row in asked.popleft()]

    def stop(self) -> None:
        """End the host while another thread waits for its answers: that thread then raises."""
        self._is_stopped = True
        if (worker := self._worker) is not None:
            worker.kill()

    def close(self) -> None:
        """End the host."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def forget(self) -> None:
        """In a forked process: leave the host to the process that started it."""
        if self._worker is not None:
            self._worker.forget()
            self._worker = None

    def _until_it_ends(self, units: Iterator[Unit]) -> Generator[list[Answer], None, HostEndedError | None]:
        """Yield answers until there are no more units, or until the host ends, which is returned."""
        try:
            yield from self._running().answers(units)
        except HostEndedError as ended:
            return ended
        return None

    def _running(self) -> Worker:
        kills = 0
        while self._worker is None or self._is_stopped:
            if self._is_stopped:
                raise StoppedError
            try:
                self._worker = self._start()
            except HostEndedError as ended:
                kills += 1
                if kills == _KILLS or not ended.was_killed:
                    msg = f"the host does not start: it {ended.reason}. `opwright verify` on the bundle says more"
                    raise MapError(msg) from ended
        return self._worker

    def _let_go(self) -> None:
        self.close()
        self.restarts += 1

    def _alone(self, unit: Unit, first: HostEndedError | None = None) -> list[Answer]:
        """The answers to a unit with which a host had ended, or may have: `first`."""
        kills = crashes = 0
        if first is not None:
            kills, crashes = int(first.was_killed), int(not first.was_killed)
        while True:
            try:
                (answers,) = self._running().answers([unit])
            except HostEndedError as ended:
                self._let_go()
                kills, crashes = kills + ended.was_killed, crashes + (not ended.was_killed)
                if kills < _KILLS and crashes < _CRASHES:
                    continue
                if len(unit) > 1:
                    return [answer for row in unit for answer in self._alone([row])]
                return [Answer(failure=Failure("run_failed", f"the host {ended.reason}, each time it ran this input"))]
            return answers
