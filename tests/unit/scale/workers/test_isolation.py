from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opwright.errors import MapError
from opwright.scale.rows import Answer, Array, Unit
from opwright.scale.stopped import StoppedError
from opwright.scale.workers.host_process import EndedError
from opwright.scale.workers.isolation import Isolation
from opwright.scale.workers.worker import HostEndedError


@dataclass
class World:
    """Hosts that crash at certain rows, and are killed at certain times.

    Attributes:
        crashing: the rows that always make a host exit.
        kills: for each unit that a host receives, whether it is killed then; False after the last one.
        ahead: how many units a host reads ahead.
    """

    crashing: set[bytes]
    kills: Iterator[bool]
    ahead: int
    started: int = 0
    open: int = 0
    runs: list[bytes] = field(default_factory=list)

    def start(self) -> FakeWorker:
        self.started += 1
        self.open += 1
        return FakeWorker(self)


class FakeWorker:
    """A host without a process. Like a real one, it cannot be used after it has exited."""

    pid = 1

    def __init__(self, world: World) -> None:
        self._world = world
        self._has_ended = False

    def answers(self, units: Iterable[Unit]) -> Iterator[list[Answer]]:
        assert not self._has_ended
        waiting = iter(units)
        sent: list[Unit] = []
        while True:
            while len(sent) < self._world.ahead and (unit := next(waiting, None)) is not None:
                sent.append(unit)
            if not sent:
                return
            rows = [bytes(row["x"]) for row in sent[0]]  # type: ignore[arg-type]
            if next(self._world.kills, False):
                self._end(sent, was_killed=True)
            if self._world.crashing & set(rows):
                self._end(sent, was_killed=False)
            self._world.runs += rows
            sent.pop(0)
            yield [Answer((Array("uint8", (1,), row),)) for row in rows]

    def _end(self, sent: list[Unit], *, was_killed: bool) -> None:
        self._has_ended = True
        raise HostEndedError(list(sent), EndedError("was ended", was_killed=was_killed))

    def close(self) -> None:
        self._has_ended = True
        self._world.open -= 1

    def kill(self) -> None:
        self._has_ended = True


SIZES = st.lists(st.integers(0, 4), max_size=12)
# At most four kills in a row: with five, a row is assumed to always make its host exit.
KILLS = st.lists(st.booleans(), max_size=60).map(
    lambda kills: [kill and not all(kills[max(0, n - 4) : n] or [False]) for n, kill in enumerate(kills)]
)


def isolated(world: World, units: list[Unit]) -> list[list[Answer]]:
    isolation = Isolation(world.start)  # type: ignore[arg-type]  # it replaces a worker
    found = list(isolation.answers(units))
    isolation.close()
    assert world.open == 0
    assert isolation.restarts <= world.started
    return found


@given(SIZES, st.sets(st.integers(0, 48)), st.integers(1, 5))
def test_exactly_the_rows_that_make_their_host_exit_fail(sizes: list[int], crashing: set[int], ahead: int) -> None:
    numbers = iter(range(1000))
    units: list[Unit] = [[{"x": b"%d" % next(numbers)} for _ in range(size)] for size in sizes]
    world = World({b"%d" % number for number in crashing}, iter(()), ahead)
    found = isolated(world, units)
    assert [len(answers) for answers in found] == sizes
    for unit, answers in zip(units, found, strict=True):
        for row, answer in zip(unit, answers, strict=True):
            if row["x"] in world.crashing:
                assert answer.failure == ("run_failed", "the host was ended each time it ran this input")
            else:
                assert answer.outputs[0].data == row["x"]


@given(SIZES, st.sets(st.integers(0, 48)), KILLS, st.integers(1, 5))
def test_a_host_that_is_killed_now_and_then_changes_no_answer(
    sizes: list[int], crashing: set[int], kills: list[bool], ahead: int
) -> None:
    numbers = iter(range(1000))
    units: list[Unit] = [[{"x": b"%d" % next(numbers)} for _ in range(size)] for size in sizes]
    rows = {b"%d" % number for number in crashing}
    # Kills and crashes of a unit are counted separately, so kills between crashes do not change the answers.
    assert isolated(World(rows, iter(kills), ahead), units) == isolated(World(rows, iter(()), ahead), units)


def test_a_unit_that_is_killed_each_time_fails_after_five() -> None:
    world = World(set(), iter([True] * 5), 1)
    ((answer,),) = isolated(world, [[{"x": b"0"}]])
    assert answer.failure == ("run_failed", "the host was ended each time it ran this input")
    assert world.runs == []


def test_a_crashing_row_costs_two_hosts_and_its_neighbours_run_once() -> None:
    world = World({b"1"}, iter(()), 3)
    isolated(world, [[{"x": b"%d" % number}] for number in range(6)])
    assert world.runs == [b"0", b"2", b"3", b"4", b"5"]
    assert world.started == 3


def test_hosts_that_never_start_stop_the_map() -> None:
    tries = []

    def start() -> FakeWorker:
        tries.append(1)
        raise HostEndedError([], EndedError("was ended by SIGKILL", was_killed=True))

    with pytest.raises(MapError, match=r"^the host does not start: it was ended by SIGKILL\. Run `opwright verify`"):
        next(Isolation(start).answers([[{"x": b"0"}]]))  # type: ignore[arg-type]
    assert len(tries) == 5


def test_a_stopped_worker_raises_and_starts_no_more_hosts() -> None:
    world = World(set(), iter(()), 1)
    isolation = Isolation(world.start)  # type: ignore[arg-type]
    answers = isolation.answers([[{"x": b"0"}]])
    isolation.stop()
    with pytest.raises(StoppedError):
        next(answers)
    assert world.started == 0
