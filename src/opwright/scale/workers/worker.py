"""A host that answers units as they arrive."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING

from opwright.errors import MapError
from opwright.scale.workers.gpus import VARIABLE
from opwright.scale.workers.host_process import EndedError, HostProcess
from opwright.scale.workers.messages import request, take_answer, take_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from opwright.scale.rows import Answer, Unit
    from opwright.scale.work import Limits

# Enough to never let a worker wait for the driver; few enough to run again one by one after a crash.
_UNITS_AHEAD = 16
_BYTES_AHEAD = 2**26


class HostEndedError(Exception):
    """The host exited, or was killed, before it had answered everything.

    Attributes:
        unanswered: the units that it had received and not answered, in order, including units without rows.
        reason: the reason, for messages.
        was_killed: whether another process killed it, or the system did because memory ran out.
    """

    def __init__(self, unanswered: Sequence[Unit], ended: EndedError) -> None:
        super().__init__(ended.reason)
        self.unanswered = unanswered
        self.reason = ended.reason
        self.was_killed = ended.was_killed


class Worker:
    """A running host.

    Args:
        command: the host program and the bundle.
        threads: the number of threads that one run uses.
        limits: the resources that the host may use.
        folder: the folder that the paths of inputs start from.

    Raises:
        MapError: the host rejects the bundle.
        HostEndedError: the host exited while it loaded the bundle.
    """

    def __init__(self, command: Sequence[str | Path], threads: int, limits: Limits, folder: Path) -> None:
        memory = [] if limits.memory_bytes is None else ["--memory-limit", str(limits.memory_bytes)]
        environment = {} if limits.gpu is None else {VARIABLE: limits.gpu}
        self._host = HostProcess([*command, "--stream", "--threads", str(threads), *memory], folder, environment)
        self._timeout_s = limits.timeout_s
        self._waited_s = 0.0
        self._sent: deque[_Sent] = deque()
        try:
            self._wait_until_ready()
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """The process ID of the host."""
        return self._host.pid

    def answers(self, units: Iterable[Unit]) -> Iterator[list[Answer]]:
        """Yield the answers to units, in order, one list for each; units are read ahead of their answers.

        Raises:
            HostEndedError: the host exited; this worker cannot be used any more.
        """
        waiting = iter(units)
        more = True
        self._waited_s = 0.0
        while True:
            while more and self._has_room():
                unit = next(waiting, None)
                if unit is None:
                    more = False
                else:
                    self._ask(unit)
            while self._sent and self._sent[0].is_answered():
                yield self._sent.popleft().answers
                self._waited_s = 0.0
            if self._sent:
                self._wait()
            elif not more:
                return

    def kill(self) -> None:
        """Kill the host, from any thread; reading its answers then fails."""
        self._host.kill()

    def close(self) -> None:
        """Stop the host, immediately even if it is busy."""
        self._host.close()

    def forget(self) -> None:
        """In a forked process: leave the host to the process that started it."""
        self._host.forget()

    def _wait_until_ready(self) -> None:
        try:
            while (header := take_line(self._host.received)) is None:
                self._host.exchange(None)
        except EndedError as ended:
            raise HostEndedError([], ended) from ended
        if error := header.get("error"):
            msg = f"the host rejects the bundle: {error['message']} ({error['kind']})"
            raise MapError(msg)

    def _has_room(self) -> bool:
        if len(self._sent) >= _UNITS_AHEAD:
            return False
        return not self._sent or sum(sent.size for sent in self._sent) < _BYTES_AHEAD

    def _ask(self, unit: Unit) -> None:
        pieces = request(unit) if unit else []
        self._sent.append(_Sent(unit, sum(map(len, pieces))))
        self._host.send(pieces)

    def _wait(self) -> None:
        """Wait until the host has read or written something.

        The time limit applies only to waiting since the last answer: the time that the caller spends on building units
        and using answers does not count.
        """
        began = time.monotonic()
        left_s = None if self._timeout_s is None else max(0.0, self._timeout_s - self._waited_s)
        try:
            if not self._host.exchange(left_s):
                self._host.kill()
                cause = f"did not answer within {self._timeout_s:g} s"
                raise self._host.ended(cause)
        except EndedError as ended:
            raise HostEndedError([sent.unit for sent in self._sent], ended) from ended
        self._waited_s += time.monotonic() - began
        self._take_answers()

    def _take_answers(self) -> None:
        for sent in self._sent:
            while not sent.is_answered():
                if (answer := take_answer(self._host.received)) is None:
                    return
                sent.answers.append(answer)


class _Sent:
    """A unit that was sent."""

    def __init__(self, unit: Unit, size: int) -> None:
        self.unit = unit
        self.size = size
        self.answers: list[Answer] = []

    def is_answered(self) -> bool:
        return len(self.answers) == len(self.unit)
