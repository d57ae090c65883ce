"""The report of a bench as a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from opwright.bencher.report import digest
from opwright.bencher.report.plots import picture
from opwright.report.format import duration, of_bytes, of_seconds
from opwright.report.page import rendered

if TYPE_CHECKING:
    from opwright.bencher.result import Report

_TEMPLATE = Path(__file__).with_name("bench.html.jinja")


def page(report: Report) -> str:
    """Returns the report as an HTML page: no other file, no network, nothing that is not escaped."""
    groups = digest.groups(report)
    pictures = [
        picture(group, f"picture-{number}") if any(cell.timing("reference") for cell in group.cells) else ""
        for number, group in enumerate(groups, start=1)
    ]
    return rendered(
        _TEMPLATE,
        tool="opwright bench",
        subject=report.namespace,
        outcome=digest.outcome(report),
        tally=digest.tally(report),
        facts={
            "folder": report.path,
            **report.machine.facts(),
            "seed": str(report.seed),
            "rounds end at": report.rule,
            "time": duration(report.seconds),
        },
        groups=list(zip(groups, pictures, strict=True)),
        what_rows_are=digest.WHAT_ROWS_ARE,
        remarks=digest.remarks(report),
        row_of=digest.row_of,
        spread_words=digest.spread_words,
        ratio_words=digest.ratio_words,
        of_bytes=of_bytes,
        of_seconds=of_seconds,
        seed=report.seed,
    )
