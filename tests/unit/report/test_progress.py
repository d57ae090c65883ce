from __future__ import annotations

import io

import pytest
from rich.console import Console

from opwright.report.progress import Progress
from opwright.report.terminal import console


@pytest.mark.parametrize(
    ("verbose", "lines"),
    [(True, ["mine: scripting", "mine: compile [1/3] cpu.cpp", "mine: waiting"]), (False, ["mine: waiting"])],
)
def test_in_a_pipe_steps_are_lines_only_when_verbose_and_notes_always(verbose: bool, lines: list[str]) -> None:
    shown = io.StringIO()
    with Progress("mine", verbose=verbose, console=Console(file=shown)) as progress:
        progress.step("scripting")
        progress.step("compile", "cpu.cpp", 1, 3)
        progress.note("waiting")
    assert shown.getvalue().splitlines() == lines


def test_on_a_terminal_the_step_is_one_line_that_disappears() -> None:
    shown = io.StringIO()
    with Progress("mine", console=Console(file=shown, force_terminal=True)) as progress:
        progress.step("scripting", "[red]\x1b[2J")
    assert "mine: scripting [red]\\x1b[2J" in shown.getvalue()
    assert shown.getvalue().endswith("\x1b[2K")


def test_a_nested_display_does_not_change_the_outer_one() -> None:
    shown = io.StringIO()
    shared = Console(file=shown, force_terminal=True)
    with Progress("outer", console=shared) as outer, Progress("inner", console=shared) as inner:
        inner.step("compile")
        outer.step("operator libraries")
    assert "outer: operator libraries" in shown.getvalue()
    assert "inner" not in shown.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_forced_colour_does_not_force_live_displays(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: terminal)
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with Progress("mine") as progress:
        progress.step("scripting")
    assert ("mine: scripting" in stream.getvalue()) == terminal
    console(stderr=True).print("[red]red[/red]")
    assert "\x1b[31mred" in stream.getvalue()
