from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from opwright.errors import MapError
from opwright.scale.rows import Answer, Array, Failure, Unit
from opwright.scale.work import Limits
from opwright.scale.workers.isolation import Isolation
from opwright.scale.workers.worker import HostEndedError, Worker

SCRIPT = Path(__file__).parent / "scripted_host.py"


class Start(Protocol):
    """Starts a scripted host."""

    def __call__(self, first: str = "", *, timeout_s: float | None = None) -> Worker: ...


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[Worker] = []

    def start(first: str = "", *, timeout_s: float | None = None) -> Worker:
        command: list[str | Path] = [sys.executable, "-IS", SCRIPT, first]
        started.append(Worker(command, 1, Limits(timeout_s=timeout_s), tmp_path))
        return started[-1]

    yield start
    for worker in started:
        worker.close()


def unit(*words: str | bytes) -> Unit:
    return [{"x": word} for word in words]


def texts(answers: list[Answer]) -> list[str]:
    """The results of rows: the text that the host echoed, or the failure's message."""
    return [answer.failure.message if answer.failure else answer.outputs[0].data.decode() for answer in answers]


def test_units_are_answered_in_order(start: Start) -> None:
    units = [unit("a"), unit("b", "c"), unit("fail"), unit(b"by\0tes", "d"), unit(), unit(b"")]
    found = list(start().answers(units))
    assert [texts(answers) for answers in found] == [
        ["a"],
        ["b", "c"],
        ["it cannot be read"],
        ["by\0tes", "d"],
        [],
        [""],
    ]
    assert found[0] == [Answer((Array("uint8", (1,), b"a"),), None, 0.5)]
    assert found[2] == [Answer(failure=Failure("input_unreadable", "it cannot be read"))]


def test_large_inputs_and_answers_flow_at_the_same_time(start: Start) -> None:
    large = os.urandom(100).hex().encode() * 50_000
    found = [texts(answers)[0] for answers in start().answers([unit(large), unit(large), unit("end")])]
    assert found == [large.decode(), large.decode(), "end"]


def test_output_on_stderr_does_not_block_a_host(start: Start) -> None:
    assert [texts(found) for found in start().answers([unit("chatter"), unit("a")])] == [["chatter"], ["a"]]


def test_units_are_read_ahead_of_their_answers_within_limits(start: Start) -> None:
    taken = []

    def units() -> Iterator[Unit]:
        for number in range(200):
            taken.append(number)
            yield unit(str(number))

    answers = start().answers(units())
    next(answers)
    assert len(taken) < 40
    assert len(list(answers)) == 199


@pytest.mark.parametrize(
    ("word", "reason", "was_killed"),
    [
        ("crash", "was ended by SIGSEGV, in the operator a::b", False),
        ("kill", "was ended by SIGKILL", True),
        ("abort", "was ended by SIGABRT", False),
        ("leave", "exited with 3: it has to leave", False),
    ],
)
def test_an_exit_is_reported_with_its_reason_and_the_unanswered_units(
    start: Start, word: str, reason: str, was_killed: bool
) -> None:
    units = [unit("b", word, "c"), unit(), unit("d")]
    with pytest.raises(HostEndedError) as caught:
        next(start().answers(units))
    assert caught.value.reason == reason
    assert caught.value.was_killed == was_killed
    assert caught.value.unanswered == units


@pytest.mark.parametrize("word", ["crash", "kill", "leave"])
def test_units_without_rows_after_a_crash_keep_their_places(start: Start, word: str) -> None:
    units = [unit("a"), unit(word), unit(), unit("b"), unit(), unit(), unit("c")]
    isolation = Isolation(start)
    found = [texts(answers) for answers in isolation.answers(units)]
    assert [found[0], *found[2:]] == [["a"], [], ["b"], [], [], ["c"]]
    assert found[1][0].startswith("the host ")
    isolation.close()


def test_a_host_that_does_not_answer_in_time_is_killed(start: Start) -> None:
    worker = start(timeout_s=0.1)
    with pytest.raises(HostEndedError, match=r"^did not answer within 0\.1 s$") as caught:
        list(worker.answers([unit("hang"), unit("a")]))
    assert caught.value.unanswered == [unit("hang"), unit("a")]
    assert not caught.value.was_killed
    with pytest.raises(ProcessLookupError):
        os.kill(worker.pid, 0)


def test_the_time_spent_on_building_units_does_not_count(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 0.0
    monkeypatch.setattr("opwright.scale.workers.worker.time.monotonic", lambda: clock)

    def units() -> Iterator[Unit]:
        nonlocal clock
        for word in "abc":
            clock += 1000.0
            yield unit(word)
        clock += 1000.0

    assert [texts(found) for found in start(timeout_s=100).answers(units())] == [["a"], ["b"], ["c"]]


def test_a_host_that_rejects_the_bundle_stops_the_map(start: Start) -> None:
    with pytest.raises(MapError, match=r"^the host rejects the bundle: there is none \(bundle_missing\)$"):
        start("refuse")


def test_a_host_that_exits_while_it_starts_is_reported(start: Start) -> None:
    with pytest.raises(HostEndedError, match=r"^exited with 3: it has to leave$"):
        start("leave")
    text = "the host does not start: it exited with 3: it has to leave. Run `opwright verify` on the bundle for details"
    with pytest.raises(MapError, match=f"^{re.escape(text)}$"):
        next(Isolation(lambda: start("leave")).answers([unit("a")]))


def test_a_host_that_is_killed_from_outside_is_reported(start: Start) -> None:
    worker = start()
    answers = worker.answers([unit("a"), unit("hang")])
    assert texts(next(answers)) == ["a"]
    os.kill(worker.pid, signal.SIGKILL)
    with pytest.raises(HostEndedError, match=r"^was ended by SIGKILL$") as caught:
        next(answers)
    assert caught.value.was_killed
    assert caught.value.unanswered == [unit("hang")]


def test_a_closed_worker_leaves_no_process(start: Start) -> None:
    worker = start()
    answers = worker.answers([unit("hang")])
    worker.kill()
    with pytest.raises(HostEndedError):
        next(answers)
    worker.close()
    with pytest.raises(ProcessLookupError):
        os.kill(worker.pid, 0)


@pytest.mark.parametrize(("gpu", "seen"), [("3", "3"), (None, "of this process")])
def test_the_host_receives_its_own_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gpu: str | None, seen: str
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "of this process")
    error = "{'error': {'message': os.environ['CUDA_VISIBLE_DEVICES'], 'kind': 'x'}}"
    command = [sys.executable, "-ISc", f"import json, os; print(json.dumps({error}))"]
    with pytest.raises(MapError, match=rf"the host rejects the bundle: {seen} \(x\)"):
        Worker(command, 1, Limits(gpu=gpu), tmp_path)
