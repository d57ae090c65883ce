from __future__ import annotations

import sys
import threading

import pytest

from opwright.checker.processes import hang_watch
from opwright.checker.processes.hang_watch import HangWatch
from opwright.toolchain.run import run

LIMIT_S = 100.0


class Machine:
    """A machine with simulated time, whose process uses `cores` of its cores and ends when faulthandler ends it."""

    def __init__(self, cores: float) -> None:
        self.cores = cores
        self.now_s = 0.0
        self.end_s: float | None = None
        self.postponed = 0
        self.has_begun = threading.Event()
        self.has_ended = threading.Event()

    def monotonic(self) -> float:
        return self.now_s

    def process_time(self) -> float:
        return self.now_s * self.cores

    def sleep(self, seconds: float) -> None:
        self.has_begun.wait()
        if self.end_s is not None and self.now_s + seconds >= self.end_s:
            self.now_s = self.end_s
            self._end()
        self.now_s += seconds
        if self.now_s > 100 * LIMIT_S:
            self._end()

    def _end(self) -> None:
        self.has_ended.set()
        threading.Event().wait()  # the thread is a daemon

    def dump_traceback_later(self, seconds: float, *, exit: bool) -> None:  # noqa: A002  faulthandler's name
        assert exit
        self.postponed += 1
        self.end_s = self.now_s + seconds

    def cancel_dump_traceback_later(self) -> None:
        self.end_s = None


def watched(monkeypatch: pytest.MonkeyPatch, cores: float) -> tuple[Machine, HangWatch]:
    machine = Machine(cores)
    monkeypatch.setattr(hang_watch, "time", machine)
    monkeypatch.setattr(hang_watch, "faulthandler", machine)
    watch = HangWatch(LIMIT_S)
    watch.restart()
    return machine, watch


@pytest.mark.parametrize(
    ("cores", "end_s"),
    [
        pytest.param(0.0, LIMIT_S, id="waits"),
        pytest.param(1.0, LIMIT_S, id="computes"),
        pytest.param(4.0, LIMIT_S, id="computes in several threads"),
        pytest.param(0.1, 10 * LIMIT_S, id="has a tenth of a core on a busy machine"),
    ],
)
def test_the_limit_of_a_step_excludes_the_time_that_a_busy_machine_takes(
    monkeypatch: pytest.MonkeyPatch, cores: float, end_s: float
) -> None:
    machine, _ = watched(monkeypatch, cores)
    machine.has_begun.set()
    assert machine.has_ended.wait(60)
    assert machine.now_s == pytest.approx(end_s, rel=0.06)


def test_every_step_has_the_whole_limit_but_few_of_them_postpone_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, watch = watched(monkeypatch, 0.0)
    for _ in range(1000):
        machine.now_s += LIMIT_S / 500
        watch.restart()
        assert machine.end_s is not None
        assert machine.now_s + LIMIT_S <= machine.end_s <= machine.now_s + 1.06 * LIMIT_S
    assert machine.postponed < 50


def test_a_step_after_a_pause_has_the_whole_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, watch = watched(monkeypatch, 0.0)
    watch.stop()
    assert machine.end_s is None
    watch.restart()
    assert machine.end_s is not None
    assert machine.end_s >= LIMIT_S


def test_there_is_no_time_limit_between_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, watch = watched(monkeypatch, 1.0)
    watch.stop()
    machine.has_begun.set()
    assert machine.has_ended.wait(60)
    assert machine.now_s > 99 * LIMIT_S


@pytest.mark.parametrize(
    "step",
    [
        pytest.param("__import__('time').sleep(999)", id="waits"),
        pytest.param("sum(iter(int, 1))", id="never releases the interpreter's lock"),
        pytest.param("exec('while True: pass')", id="computes"),
    ],
)
def test_a_step_that_hangs_ends_the_process_and_prints_its_stack(step: str) -> None:
    program = f"from opwright.checker.processes.hang_watch import HangWatch\nHangWatch(0.5).restart()\n{step}"
    completed = run([sys.executable, "-c", program], check=False, timeout_s=300)
    assert completed.exit_code == 1
    assert completed.output.startswith("Timeout (")
    assert 'File "<string>", line 3 in <module>' in completed.output
