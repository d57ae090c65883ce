"""The report as one page that holds all it needs: it can be mailed, kept, and opened without a network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import jinja2

from opwright.checker.report import digest

if TYPE_CHECKING:
    from opwright.checker.report.digest import Fault
    from opwright.checker.verdict import Cell, Report

_TEMPLATE = Path(__file__).with_name("page.html.jinja")


def page(report: Report) -> str:
    """Returns the report as an HTML page: no other file, no network, nothing that is not escaped."""
    environment = jinja2.Environment(
        autoescape=True, lstrip_blocks=True, trim_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["duration"] = digest.duration
    faults = digest.faults(report)
    faults_of: dict[Cell, list[tuple[int, Fault]]] = {}
    for number, fault in enumerate(faults, start=1):
        for sight in fault.sights:
            if sight.cell:
                faults_of.setdefault(sight.cell, []).append((number, fault))
    made = environment.from_string(_TEMPLATE.read_text(encoding="utf-8")).render(
        report=report,
        outcome=digest.outcome(report),
        tally=digest.tally(report),
        marks=digest.MARKS,
        runtimes=digest.runtimes(report),
        rows=digest.rows(report),
        faults=faults,
        faults_of=faults_of,
        remarks=digest.remarks(report),
    )
    return digest.printable(made)
