from __future__ import annotations

import io
import re
import threading
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from opwright.checker.report.progress import CheckProgress
from opwright.checker.verdict import Cell

if TYPE_CHECKING:
    from collections.abc import Sequence

CELLS = (
    Cell("trap::f", "eager", "cpu", "failed", seconds=1.23),
    Cell("trap::f", "host-linked", "cpu", "passed", seconds=12),
    Cell("trap::f", "vmap", "cpu", "not applicable", "it does not claim [this]"),
)


def checked(console: Console, *, verbose: bool = False, cells: Sequence[Cell] = CELLS) -> None:
    with CheckProgress("trap", console, verbose=verbose) as progress:
        progress.start([(cell.op, cell.runtime, cell.device) for cell in cells])
        for cell in cells:
            if cell.status != "not applicable":
                progress.begin(cell.op, cell.runtime, cell.device)
                progress.case("x transposed,\n[float32]")
            progress.end(cell)


def console(*, terminal: bool = False) -> tuple[Console, io.StringIO]:
    stream = io.StringIO()
    return Console(file=stream, width=100, force_terminal=terminal, _environ={"TERM": "xterm"}), stream


def test_nothing_is_printed_without_a_terminal() -> None:
    quiet, stream = console()
    checked(quiet)
    assert stream.getvalue() == ""


def test_verbose_prints_a_line_for_each_cell() -> None:
    for terminal in (False, True):
        loud, stream = console(terminal=terminal)
        checked(loud, verbose=True)
        assert stream.getvalue().splitlines() == [
            "eager        trap::f  failed  1.2 s",
            "host-linked  trap::f  passed  12 s",
            "vmap         trap::f  not applicable  it does not claim [this]",
        ]


def test_devices_are_shown_if_there_are_several() -> None:
    loud, stream = console()
    cells = [Cell("trap::f", "eager", device, "passed", seconds=1) for device in ("cpu", "cuda")]
    checked(loud, verbose=True, cells=cells)
    assert stream.getvalue().splitlines() == [
        "eager  trap::f  cpu   passed  1.0 s",
        "eager  trap::f  cuda  passed  1.0 s",
    ]


def test_a_terminal_shows_running_cells_and_is_clean_afterwards() -> None:
    live, stream = console(terminal=True)
    with CheckProgress("trap", live) as progress:
        progress.start([(cell.op, cell.runtime, cell.device) for cell in CELLS])
        progress.end(CELLS[0])
        progress.begin("trap::f", "host-linked", "cpu")
        progress.case("x transposed,\n[float32]")
        ready, done = threading.Event(), threading.Event()

        def another() -> None:
            progress.begin("trap::f", "vmap", "cpu")
            progress.case("x empty")
            ready.set()
            done.wait(10)

        thread = threading.Thread(target=another)
        thread.start()
        ready.wait(10)
        progress.case("x expanded, [float32]")
        progress._live.refresh()
        done.set()
        thread.join()
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())
    assert re.search(r"trap: 1 failed .* 1/3 ", text)
    assert re.search(r"host-linked f  x expanded, \[float32\]", text)
    assert re.search(r"vmap f  x empty", text)
    assert stream.getvalue().rstrip().endswith("\x1b[2K")


def test_an_exception_ends_the_display() -> None:
    live, _ = console(terminal=True)
    progress = CheckProgress("trap", live)
    with pytest.raises(ZeroDivisionError), progress:
        progress.begin("trap::f", "eager", str(1 / 0))
    assert not progress._live.live.is_started
