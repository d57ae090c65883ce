"""Prints a report on the terminal: the matrix, every fault with its fix, and a verdict as the last line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opwright.checker.report.digest import MARKS, UNRUN, faults, outcome, remarks, rows, runtimes, verdict
from opwright.report.terminal import paragraph, print_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from opwright.checker.report.digest import Fault, Outcome, Row
    from opwright.checker.verdict import Report, Status
    from opwright.report.terminal import Piece, Pieces

_MARK_STYLES: dict[Status, str] = {
    "passed": "green",
    "failed": "bold red",
    "lacking": "yellow",
    "not applicable": "dim",
    "not run": "yellow",
}
_VERDICT_STYLES: dict[Outcome, str] = {"passed": "bold green", "failed": "bold red", "nothing ran": "bold yellow"}

_MARK_WIDTH = max(map(len, MARKS.values()))
_LABEL = 14  # columns for the label of a field


def show(report: Report, console: Console) -> None:
    """Print a report: the matrix, each fault once, the reasons, and a verdict as the last line."""
    print_lines(_report(report, console), console)


def _report(report: Report, console: Console) -> Iterator[Pieces]:
    width = console.width if console.is_terminal else None
    facts = (report.namespace, report.path, f"PyTorch {report.pytorch}", report.machine)
    yield [(" · ".join(fact for fact in facts if fact), "dim")]
    yield []
    if report.cells:
        yield from _matrix(rows(report), runtimes(report), console.width)
        yield []
    for fault in faults(report):
        yield from _fault(fault, width)
        yield []
    for heading, found in remarks(report).items():
        yield [(heading, "bold")]
        for remark in found:
            yield from paragraph("  - ", f"{remark.where}: {remark.text}", width)
        yield []
    yield [(verdict(report), _VERDICT_STYLES[outcome(report)])]


def _matrix(shown: Sequence[Row], columns: Sequence[str], width: int) -> Iterator[Pieces]:
    """A row for each operator and device, a column for each runtime; split into bands if the terminal is narrow."""
    widths = {runtime: max(_MARK_WIDTH, *map(len, _heading(runtime))) for runtime in columns}
    devices = max(len(row.device) for row in shown)
    beside = max(len(row.op) for row in shown) + 2 + devices
    above = 2 + devices  # the operator's name is on a separate line
    layouts = [(label, gap) for label in (beside, above) for gap in (2, 1)]
    fitting = [(label, gap) for label, gap in layouts if label + sum(widths.values()) + gap * len(widths) <= width]
    label, gap = fitting[0] if fitting else layouts[-1]
    for number, band in enumerate(_bands(widths, gap, width - label)):
        if number:
            yield []
        for line in (0, 1):
            headings = [_heading(name)[line] for name in band]
            if any(headings):
                yield [(" " * label, ""), *_in_columns([(text, "bold") for text in headings], band, gap)]
        named = ""
        for row in shown:
            name = row.op if row.op != named else ""
            named = row.op
            if label == above and name:
                yield [(name, "bold")]
            device = f"{row.device:<{devices}}"
            lead = [("  ", "")] if label == above else [(f"{name:<{label - devices}}", "bold")]
            yield [*lead, (device, "dim"), *_in_columns([_mark(row, runtime) for runtime in band], band, gap)]
    used = {cell.status for row in shown for cell in row.cells.values()}
    if legend := [f"{MARKS[status]} = {status}" for status in UNRUN if status in used]:
        yield [(", ".join(legend), "dim")]


def _heading(runtime: str) -> tuple[str, str]:
    """The two lines of a heading: `host-linked` is host above linked; short names are on the lower line."""
    first, _, second = runtime.partition("-")
    return (first, second) if second else ("", first)


def _mark(row: Row, runtime: str) -> Piece:
    cell = row.cells.get(runtime)
    return (MARKS[cell.status], _MARK_STYLES[cell.status]) if cell else ("", "")


def _bands(widths: dict[str, int], gap: int, room: int) -> Iterator[dict[str, int]]:
    """The columns with their widths, split into bands that fit."""
    band: dict[str, int] = {}
    for name, width in widths.items():
        if band and sum(band.values()) + width + gap * (len(band) + 1) > room:
            yield band
            band = {}
        band[name] = width
    yield band


def _in_columns(pieces: Sequence[Piece], band: dict[str, int], gap: int) -> Iterator[Piece]:
    for (text, style), width in zip(pieces, band.values(), strict=True):
        yield " " * gap, ""
        yield f"{text:<{width}}", style


def _fault(fault: Fault, width: int | None) -> Iterator[Pieces]:
    """One fault in full, and the other places where it was seen."""
    failure, diagnosis = fault.failure, fault.failure.kind.diagnosis
    where = f" in {fault.sights[0].where}" if fault.sights[0].where else ""
    title = f"  {fault.subject}{where}: {diagnosis.title}"
    yield [(MARKS["failed"], _MARK_STYLES["failed"]), (title, "bold"), (f" ({failure.kind.value})", "")]
    yield from _field("case", failure.case, width)
    if failure.repro:
        # At the left edge, never wrapped and never truncated, so that it can be pasted.
        yield [("  repro:", "dim")]
        yield from ([(line, "cyan")] for line in failure.repro.splitlines())
    yield from _field("got", failure.got, width)
    yield from _field("expected", failure.expected, width)
    yield from _field("likely cause", diagnosis.cause, width)
    yield from _field("fix", failure.fix, width)
    yield from _field("detail", failure.detail, width)
    if fault.also_in:
        yield [(f"  also in: {', '.join(fault.also_in)}", "")]


def _field(label: str, text: str, width: int | None) -> Iterator[Pieces]:
    return paragraph(f"  {label:<{_LABEL}}", text, width)
