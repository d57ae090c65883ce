from __future__ import annotations

import io
import threading

import pytest
from rich.console import Console

from opwright.scale import progress as module
from opwright.scale.progress import MapProgress


class Pipe(io.StringIO):
    """The standard error of a program in a pipe, which records when a text was written."""

    def __init__(self, awaited: str = "\n") -> None:
        super().__init__()
        self._awaited = awaited
        self.was_written = threading.Event()

    def write(self, text: str) -> int:
        done = super().write(text)
        if self._awaited in text:
            self.was_written.set()
        return done


def test_the_line_before_the_inputs_are_known_counts_them() -> None:
    assert MapProgress("results").line() == "results: 0 inputs found"


def test_a_line_has_the_counts_the_rate_and_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 100.0
    monkeypatch.setattr("opwright.scale.progress.time.monotonic", lambda: clock)
    progress = MapProgress("results")
    progress.begin(10_000, 1000, 7)
    assert progress.line() == "results: 1,000 of 10,000 done, 7 failed"
    clock += 10
    assert progress.line() == "results: 1,000 of 10,000 done, 7 failed"
    for _ in range(1500):
        progress.count(1, 0)
    progress.count(0, 2)
    assert progress.line() == "results: 2,500 of 10,000 done, 9 failed, 150/s, 50 s left"


def test_a_name_cannot_move_the_cursor() -> None:
    assert MapProgress("a\x1b[2J").line() == "a\\x1b[2J: 0 inputs found"


def test_a_pipe_receives_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LINE_S", 0.001)
    pipe = Pipe()
    with MapProgress("a" * 200, Console(file=pipe)) as progress:
        progress.look()
        assert pipe.was_written.wait(60)
    assert set(pipe.getvalue().splitlines()) == {f"{'a' * 200}: 0 inputs found"}


def test_a_progress_that_is_entered_twice_is_shown_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LINE_S", 1000)
    before = threading.active_count()
    with MapProgress("a", Console(file=Pipe())) as progress, progress:
        progress.look()
        progress.look()
        assert threading.active_count() == before + 1
    assert threading.active_count() == before


def test_a_terminal_shows_one_line_that_changes() -> None:
    pipe = Pipe("[red]results: 0 inputs found")
    console = Console(file=pipe, force_terminal=True, width=100)
    with MapProgress("[red]results", console) as progress, progress:
        progress.look()
        progress.look()
        assert pipe.was_written.wait(60)
    assert pipe.getvalue().count("\n") == 1  # the final one, after which the line is removed


def test_nothing_is_shown_without_a_console() -> None:
    before = threading.active_count()
    with MapProgress("a"):
        assert threading.active_count() == before
