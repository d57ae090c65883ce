"""The report on the terminal: a table for each operator, reasons, and a verdict as the last line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opwright.bencher.report.digest import (
    GPU_LEGEND,
    format_processors,
    format_ratio,
    format_spread,
    format_time,
    gpu_lines,
    groups,
    outcome,
    remarks,
    row_of,
    verdict,
)
from opwright.report.terminal import paragraph, print_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import Console

    from opwright.bencher.report.digest import Group, Outcome
    from opwright.bencher.result import Cell, Report, RowName
    from opwright.bencher.timer import Timing
    from opwright.report.terminal import Pieces

_VERDICT_STYLES: dict[Outcome, str] = {"timed": "bold green", "failed": "bold red", "nothing ran": "bold yellow"}
_FAULTS = {"wrong": "WRONG", "too fast": "TOO FAST", "raises": "RAISES", "skipped": "skipped"}
_GAP = "  "
_LEGEND = (
    "median time of a call, ± half the interquartile range; number of busy processors (processor time / time); "
    "ratio to the reference's time"
)


def show(report: Report, console: Console) -> None:
    """Print a report: the machine, a table for each operator, the reasons, and a verdict as the last line."""
    print_lines(_report(report, console.width if console.is_terminal else None), console)


def _report(report: Report, width: int | None) -> Iterator[Pieces]:
    yield [(f"{report.namespace} · {report.path}", "dim")]
    for name, fact in report.machine.facts().items():
        if fact:
            yield [(f"{name}: {fact}", "dim")]
    for group in groups(report):
        yield []
        yield [(group.title, "bold")]
        yield from _table(group, width)
        yield from _gpu_table(group)
    if report.timed:
        yield [(_LEGEND, "dim")]
    if any(cell.gpu for cell in report.cells):
        yield [(GPU_LEGEND, "dim")]
    for heading, found in remarks(report).items():
        yield []
        yield [(heading, "bold")]
        for remark in found:
            yield from paragraph("  - ", f"{remark.where}: {remark.text}" if remark.where else remark.text, width)
    yield []
    yield [(verdict(report), _VERDICT_STYLES[outcome(report)])]


def _table(group: Group, width: int | None) -> Iterator[Pieces]:
    """A line per size and direction; without spreads, then without processors, if it would be too wide."""
    for details in ((format_spread, format_processors), (format_processors,), ()):
        columns = [_sizes(group), ["direction", *(cell.direction for cell in group.cells)]]
        columns += [_column(group, name, details) for name in group.rows]
        if width is None or sum(len(column[0]) for column in map(_padded, columns)) + len(_GAP) * len(columns) <= width:
            break
    for number, line in enumerate(zip(*map(_padded, columns), strict=True)):
        yield [(text + _GAP, _style(text, heading=number == 0)) for text in line]


def _gpu_table(group: Group) -> Iterator[Pieces]:
    """The figures that exist only on a GPU, one line per row, right-aligned."""
    lines = gpu_lines(group)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for number, line in enumerate(lines):
        names = [f"{text:<{width}}" for text, width in zip(line[:3], widths, strict=False)]
        figures = [f"{text:>{width}}" for text, width in zip(line[3:], widths[3:], strict=True)]
        yield [(_GAP.join([*names, *figures]), "dim" if number == 0 else "")]


def _sizes(group: Group) -> list[str]:
    """The heading and the labels; a repeated label is blank."""
    before = ["", *(cell.size for cell in group.cells)]
    return ["size", *(cell.size if cell.size != last else "" for cell, last in zip(group.cells, before, strict=False))]


def _column(group: Group, name: RowName, details: Sequence[Callable[[Timing], str]]) -> list[str]:
    """The heading of a row, with its figures below."""
    figures = [_figures(cell, name, details) for cell in group.cells]
    widths = [max(map(len, column)) for column in zip(*filter(None, figures), strict=True)]
    lines = [" ".join(f"{text:>{width}}" for text, width in zip(line, widths, strict=False)) for line in figures]
    return [name, *(line or _word(cell, name) for line, cell in zip(lines, group.cells, strict=True))]


def _figures(cell: Cell, name: RowName, details: Sequence[Callable[[Timing], str]]) -> list[str]:
    """The time of a row, its details and its ratio to the reference's time; empty if it was not timed."""
    timing = cell.timing(name)
    if timing is None:
        return []
    found = [detail(timing) for detail in details]
    return [format_time(timing), *found, *([format_ratio(cell, name)] if name != "reference" else [])]


def _word(cell: Cell, name: RowName) -> str:
    """The status of a row that was not timed."""
    row = row_of(cell, name)
    return _FAULTS[row.status] if row else ""


def _padded(column: Sequence[str]) -> list[str]:
    width = max(map(len, column))
    return [f"{text:<{width}}" for text in column]


def _style(text: str, *, heading: bool) -> str:
    return "dim" if heading else "bold red" if text.split()[:1] in (["WRONG"], ["TOO"], ["RAISES"]) else ""
