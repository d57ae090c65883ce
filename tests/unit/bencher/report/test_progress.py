from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

from rich.console import Console

from opwright.bencher.report.progress import BenchProgress

if TYPE_CHECKING:
    from opwright.bencher.result import Report


def console(*, terminal: bool) -> tuple[Console, io.StringIO]:
    stream = io.StringIO()
    return Console(file=stream, width=120, force_terminal=terminal, force_interactive=terminal), stream


def play(progress: BenchProgress, report: Report) -> None:
    with progress:
        progress.start(2)
        for cell in report.cells[-2:]:
            progress.begin(f"{cell.op}, {cell.size}: {cell.direction}")
            progress.round()
            progress.end(cell)
            progress.end_size()


def test_a_terminal_shows_the_current_cell_and_the_number_of_finished_sizes(report: Report) -> None:
    shown, stream = console(terminal=True)
    play(BenchProgress("mine", shown), report)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())
    assert "mine  mine::scale, 1024 x 1024: both" in text
    assert re.search(r"\[red\]8\[/\]: forward .* 1/2 ", text)
    assert " 2/2 " in text


def test_without_a_terminal_nothing_is_printed(report: Report) -> None:
    shown, stream = console(terminal=False)
    play(BenchProgress("mine", shown), report)
    assert stream.getvalue() == ""


def test_verbose_prints_a_line_for_each_cell(report: Report) -> None:
    shown, stream = console(terminal=False)
    play(BenchProgress("mine", shown, verbose=True), report)
    first, second = stream.getvalue().splitlines()
    assert first == (
        "mine::scale on cpu, 2 threads, 1024 x 1024, both: reference 9.00 ms ±5 %; compiled 7.20 ms ±5 %; "
        "native 2.25 ms ±5 %; floor 900 µs ±5 %"
    )
    assert "native wrong: float32 (8,), at [0]: 3.0" in second
