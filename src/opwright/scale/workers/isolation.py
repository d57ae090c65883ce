"""Answers units even if one crashes the host: units run again, one by one, to find the row that does."""

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

# A row that crashes a host twice will do so again. A host may be killed by chance; if memory runs out, it is killed
# every time.
_CRASHES = 2
_KILLS = 5


class Isolation:
    """A worker that is restarted when its host exits.

    Units that a host had not answered when it exited run again, one at a time. If a unit of several rows makes the host
    exit again, its rows run one at a time. If a row makes the host exit again, the row has failed. Results therefore
    depend only on the units, not on when a host exited.

    Args:
        start: starts a worker.

    Attributes:
        restarts: how often a host exited.
    """

    def __init__(self, start: Callable[[], Worker]) -> None:
        self._start = start
        self._worker: Worker | None = None
        self._is_stopped = False
        self.restarts = 0

    @property
    def pid(self) -> int | None:
        """The process ID of the host; None if none runs."""
        return None if self._worker is None else self._worker.pid

    def answers(self, units: Iterable[Unit]) -> Iterator[list[Answer]]:
        """Yield the answers to units, in order, one list for each; units are read ahead of their answers.

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
        """Yield the answers to rows that run together, in order; the answer to a failure is the failure itself.

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
        """Stop the host while another thread waits for its answers; that thread then raises StoppedError."""
        self._is_stopped = True
        if (worker := self._worker) is not None:
            worker.kill()

    def close(self) -> None:
        """Stop the host."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def forget(self) -> None:
        """In a forked process: leave the host to the process that started it."""
        if self._worker is not None:
            self._worker.forget()
            self._worker = None

    def _until_it_ends(self, units: Iterator[Unit]) -> Generator[list[Answer], None, HostEndedError | None]:
        """Yield answers until there are no more units, or until the host exits, and return the error if it did."""
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
                    msg = f"the host does not start: it {ended.reason}. Run `opwright verify` on the bundle for details"
                    raise MapError(msg) from ended
        return self._worker

    def _let_go(self) -> None:
        self.close()
        self.restarts += 1

    def _alone(self, unit: Unit, first: HostEndedError | None = None) -> list[Answer]:
        """The answers to a unit that may have made a host exit, with `first`."""
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
                return [Answer(failure=Failure("run_failed", f"the host {ended.reason} each time it ran this input"))]
            return answers
